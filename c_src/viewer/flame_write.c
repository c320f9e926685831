#include "viewer/flame_write.h"

#include "viewer/json.h"

/* Frames must have no ';' and no line breaks, which separate; others of flamegraph.pl are harmless.
 */
static void put_frame(GString *to, const char *name) {
    for (; *name; name++)
        if (*name == ';')
            g_string_append_c(to, ':');
        else if (g_ascii_iscntrl(*name))
            g_string_append_c(to, ' ');
        else
            g_string_append_c(to, *name);
}

static void put_line(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    GString *to = data;
    for (unsigned i = 0; i < depth; i++) {
        if (i)
            g_string_append_c(to, ';');
        put_frame(to, names[i]);
    }
    g_string_append_printf(to, " %" G_GUINT64_FORMAT "\n", ns);
}

void dt_flame_folded(const struct dt_flame *flame, GString *to) {
    dt_flame_each(flame, put_line, to);
}

/* The lists of a profile as JSON, all filled by one walk of the tree. */
struct lists {
    GString *frames, *samples, *weights;
    GHashTable *numbers; /* name -> number of the frame + 1 */
    uint64_t all;
};

static guint number_of(struct lists *lists, const char *name) {
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(lists->numbers, name));
    if (number)
        return number - 1;
    number = g_hash_table_size(lists->numbers);
    g_hash_table_insert(lists->numbers, (gpointer)name, GUINT_TO_POINTER(number + 1));
    dt_json_open(lists->frames, NULL, '{');
    dt_json_text(lists->frames, "name", name);
    dt_json_close(lists->frames, '}');
    return number;
}

static void put_sample(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;
    dt_json_open(lists->samples, NULL, '[');
    for (unsigned i = 0; i < depth; i++)
        dt_json_number(lists->samples, NULL, number_of(lists, names[i]));
    dt_json_close(lists->samples, ']');
    dt_json_number(lists->weights, NULL, (int64_t)ns);
    lists->all += ns;
}

/* Frees the list. */
static void put_list(GString *to, const char *name, GString *list) {
    dt_json_close(list, ']');
    dt_json_name(to, name);
    g_string_append_len(to, list->str, (gssize)list->len);
    g_string_free(list, TRUE);
}

void dt_flame_speedscope(const struct dt_flame *flame, const char *name, GString *to) {
    struct lists lists = {g_string_new("["), g_string_new("["), g_string_new("["),
                          g_hash_table_new(g_str_hash, g_str_equal), 0};
    dt_flame_each(flame, put_sample, &lists);
    dt_json_open(to, NULL, '{');
    dt_json_text(to, "$schema", "https://www.speedscope.app/file-format-schema.json");
    dt_json_text(to, "exporter", "dyntrace");
    dt_json_text(to, "name", name);
    dt_json_number(to, "activeProfileIndex", 0);
    dt_json_open(to, "shared", '{');
    put_list(to, "frames", lists.frames);
    dt_json_close(to, '}');
    dt_json_open(to, "profiles", '[');
    dt_json_open(to, NULL, '{');
    dt_json_text(to, "type", "sampled");
    dt_json_text(to, "name", name);
    dt_json_text(to, "unit", "nanoseconds");
    dt_json_number(to, "startValue", 0);
    dt_json_number(to, "endValue", (int64_t)lists.all);
    put_list(to, "samples", lists.samples);
    put_list(to, "weights", lists.weights);
    dt_json_close(to, '}');
    dt_json_close(to, ']');
    dt_json_close(to, '}');
    g_string_append_c(to, '\n');
    g_hash_table_destroy(lists.numbers);
}
