#include "viewer/flame_write.h"

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

/* The lists of a profile, each filled by one walk of the tree. */
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
    if (number)
        g_string_append_c(lists->frames, ',');
    g_string_append(lists->frames, "{\"name\":");
    dt_json_string(lists->frames, name);
    g_string_append_c(lists->frames, '}');
    return number;
}

static void put_sample(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;
    const char *between = lists->samples->len ? "," : "";
    g_string_append_printf(lists->samples, "%s[", between);
    for (unsigned i = 0; i < depth; i++)
        g_string_append_printf(lists->samples, i ? ",%u" : "%u", number_of(lists, names[i]));
    g_string_append_c(lists->samples, ']');
    g_string_append_printf(lists->weights, "%s%" G_GUINT64_FORMAT, between, ns);
    lists->all += ns;
}

void dt_flame_speedscope(const struct dt_flame *flame, const char *name, GString *to) {
    struct lists lists = {g_string_new(NULL), g_string_new(NULL), g_string_new(NULL),
                          g_hash_table_new(g_str_hash, g_str_equal), 0};
    dt_flame_each(flame, put_sample, &lists);
    g_string_append(to, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                        "\"exporter\":\"dyntrace\",\"name\":");
    dt_json_string(to, name);
    g_string_append_printf(to, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[%s]},",
                           lists.frames->str);
    g_string_append(to, "\"profiles\":[{\"type\":\"sampled\",\"name\":");
    dt_json_string(to, name);
    g_string_append_printf(
        to,
        ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" G_GUINT64_FORMAT
        ",\"samples\":[%s],\"weights\":[%s]}]}\n",
        lists.all, lists.samples->str, lists.weights->str);
    g_string_free(lists.frames, TRUE);
    g_string_free(lists.samples, TRUE);
    g_string_free(lists.weights, TRUE);
    g_hash_table_destroy(lists.numbers);
}
