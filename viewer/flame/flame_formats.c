#include "flame/flame_formats.h"

#include "shared/json.h"

/* Replaces ';' and control characters: ';' and line breaks are separators. Other special characters
   of flamegraph.pl are harmless. */
static void put_frame(GString *to, const char *name) {
    for (; *name; name++)
        if (*name == ';')
            g_string_append_c(to, ':');
        else if (g_ascii_iscntrl(*name))
            g_string_append_c(to, ' ');
        else
            g_string_append_c(to, *name);
}

/* A buffer that is flushed to the file when it is long, because there may be many stacks. */
struct writer {
    GString *text;
    struct dt_file *file;
};

enum { PIECE = 1 << 16 };

/* Keeps the last character: it decides whether the next JSON value needs a comma. */
static void pass(const struct writer *w) {
    if (w->text->len < PIECE)
        return;
    dt_file_write(w->file, w->text->str, w->text->len - 1);
    g_string_erase(w->text, 0, (gssize)w->text->len - 1);
}

static void put_line(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    const struct writer *w = data;

    for (unsigned i = 0; i < depth; i++) {
        if (i)
            g_string_append_c(w->text, ';');
        put_frame(w->text, names[i]);
    }
    g_string_append_printf(w->text, " %" PRIu64 "\n", ns);
    pass(w);
}

void dt_flame_folded(const struct dt_stacks *stacks, struct dt_file *to) {
    g_autoptr(GString) text = g_string_new(NULL);
    struct writer w = {text, to};

    dt_stacks_each(stacks, put_line, &w);
    dt_file_write(to, text->str, text->len);
}

/* The lists of a profile. Each is written by a walk over the tree. */
struct lists {
    struct writer w;
    GHashTable *numbers; /* name -> frame number */
    uint64_t all;
};

static void put_names(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    struct lists *lists = data;

    for (unsigned i = 0; i < depth; i++) {
        if (g_hash_table_contains(lists->numbers, names[i]))
            continue;
        g_hash_table_insert(lists->numbers, (void *)names[i],
                            GUINT_TO_POINTER(g_hash_table_size(lists->numbers)));
        dt_json_open(lists->w.text, NULL, '{');
        dt_json_text(lists->w.text, "name", names[i]);
        dt_json_close(lists->w.text, '}');
    }
    lists->all += ns;
    pass(&lists->w);
}

static void put_sample(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    const struct lists *lists = data;

    (void)ns;
    dt_json_open(lists->w.text, NULL, '[');
    for (unsigned i = 0; i < depth; i++)
        dt_json_number(lists->w.text, NULL,
                       GPOINTER_TO_UINT(g_hash_table_lookup(lists->numbers, names[i])));
    dt_json_close(lists->w.text, ']');
    pass(&lists->w);
}

static void put_weight(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    const struct lists *lists = data;

    (void)names;
    (void)depth;
    dt_json_number(lists->w.text, NULL, (int64_t)ns);
    pass(&lists->w);
}

static void put_list(struct lists *lists, const struct dt_stacks *stacks, const char *name,
                     dt_stacks_visit *each) {
    dt_json_open(lists->w.text, name, '[');
    dt_stacks_each(stacks, each, lists);
    dt_json_close(lists->w.text, ']');
}

void dt_flame_speedscope(const struct dt_stacks *stacks, const char *name, struct dt_file *to) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) numbers = g_hash_table_new(g_str_hash, g_str_equal);
    struct lists lists = {.w = {text, to}, .numbers = numbers};

    dt_json_open(text, NULL, '{');
    dt_json_text(text, "$schema", "https://www.speedscope.app/file-format-schema.json");
    dt_json_text(text, "exporter", "dyntrace");
    dt_json_text(text, "name", name);
    dt_json_number(text, "activeProfileIndex", 0);
    dt_json_open(text, "shared", '{');
    put_list(&lists, stacks, "frames", put_names);
    dt_json_close(text, '}');
    dt_json_open(text, "profiles", '[');
    dt_json_open(text, NULL, '{');
    dt_json_text(text, "type", "sampled");
    dt_json_text(text, "name", name);
    dt_json_text(text, "unit", "nanoseconds");
    dt_json_number(text, "startValue", 0);
    dt_json_number(text, "endValue", (int64_t)lists.all);
    put_list(&lists, stacks, "samples", put_sample);
    put_list(&lists, stacks, "weights", put_weight);
    dt_json_close(text, '}');
    dt_json_close(text, ']');
    dt_json_close(text, '}');
    g_string_append_c(text, '\n');
    dt_file_write(to, text->str, text->len);
}
