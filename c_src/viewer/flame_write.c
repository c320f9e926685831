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

/* A text that is written to the file when it has become long: stacks may be many. */
struct writer {
    GString *text;
    struct dt_file *file;
};

enum { PIECE = 1 << 16 };

static void pass(struct writer *w, size_t most) {
    if (w->text->len <= most)
        return;
    dt_file_write(w->file, w->text->str, w->text->len);
    g_string_truncate(w->text, 0);
}

static void put_line(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct writer *w = data;
    for (unsigned i = 0; i < depth; i++) {
        if (i)
            g_string_append_c(w->text, ';');
        put_frame(w->text, names[i]);
    }
    g_string_append_printf(w->text, " %" G_GUINT64_FORMAT "\n", ns);
    pass(w, PIECE);
}

void dt_flame_folded(const struct dt_flame *flame, struct dt_file *to) {
    g_autoptr(GString) text = g_string_new(NULL);
    struct writer w = {text, to};
    dt_flame_each(flame, put_line, &w);
    pass(&w, 0);
}

/* The lists of a profile, each written by a walk of the tree. */
struct lists {
    struct writer w;
    GHashTable *numbers; /* name -> number of the frame + 1 */
    uint64_t all;
    bool is_first;
};

static void begin_list(struct lists *lists, const char *name) {
    g_string_append_printf(lists->w.text, "\"%s\":[", name);
    lists->is_first = true;
}

static void next(struct lists *lists) {
    pass(&lists->w, PIECE);
    if (!lists->is_first)
        g_string_append_c(lists->w.text, ',');
    lists->is_first = false;
}

static void put_names(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;
    for (unsigned i = 0; i < depth; i++) {
        if (g_hash_table_contains(lists->numbers, names[i]))
            continue;
        g_hash_table_insert(lists->numbers, (gpointer)names[i],
                            GUINT_TO_POINTER(g_hash_table_size(lists->numbers)));
        next(lists);
        g_string_append(lists->w.text, "{\"name\":");
        dt_json_string(lists->w.text, names[i]);
        g_string_append_c(lists->w.text, '}');
    }
    lists->all += ns;
}

static void put_sample(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;
    (void)ns;
    next(lists);
    g_string_append_c(lists->w.text, '[');
    for (unsigned i = 0; i < depth; i++)
        g_string_append_printf(lists->w.text, i ? ",%u" : "%u",
                               GPOINTER_TO_UINT(g_hash_table_lookup(lists->numbers, names[i])));
    g_string_append_c(lists->w.text, ']');
}

static void put_weight(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;
    (void)names;
    (void)depth;
    next(lists);
    g_string_append_printf(lists->w.text, "%" G_GUINT64_FORMAT, ns);
}

void dt_flame_speedscope(const struct dt_flame *flame, const char *name, struct dt_file *to) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_str_hash, g_str_equal);
    struct lists lists = {.w = {text, to}, .numbers = numbers};
    g_string_append(text, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                          "\"exporter\":\"dyntrace\",\"name\":");
    dt_json_string(text, name);
    g_string_append(text, ",\"activeProfileIndex\":0,\"shared\":{");
    begin_list(&lists, "frames");
    dt_flame_each(flame, put_names, &lists);
    g_string_append(text, "]},\"profiles\":[{\"type\":\"sampled\",\"name\":");
    dt_json_string(text, name);
    g_string_append_printf(
        text, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" G_GUINT64_FORMAT ",",
        lists.all);
    begin_list(&lists, "samples");
    dt_flame_each(flame, put_sample, &lists);
    g_string_append(text, "],");
    begin_list(&lists, "weights");
    dt_flame_each(flame, put_weight, &lists);
    g_string_append(text, "]}]}\n");
    pass(&lists.w, 0);
}
