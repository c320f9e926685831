/* The sink `flame`: stacks for flame graphs, folded or as JSON for speedscope. */
#include "shared/file.h"
#include "shared/json.h"
#include "shared/sink.h"
#include "stacks/stacks.h"

enum { PATH, FORMAT, WHAT, BY };

/* Words of parameters, in the order of their enums. */
enum { FOLDED, SPEEDSCOPE };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [FORMAT] = DT_PARAM_WORD("format", "folded", "one line per stack, or JSON for speedscope",
                             "folded", "speedscope"),
    [WHAT] = DT_PARAM_WORD("what", "calls", "time in calls, or time of waits by function", "calls",
                           "waits"),
    [BY] =
        DT_PARAM_WORD("by", "process",
                      "first frames of a stack: node and process, node and initial call, or none",
                      "process", "initial", "none"),
    {0},
};

/* The output of the sink. */
struct output {
    struct dt_file *file;
    bool is_speedscope;
};

static void *start(const union dt_value *values, GError **error) {
    struct dt_file *file = dt_file_open(values[PATH].string, error);

    if (!file)
        return NULL;
    struct output *output = g_new0(struct output, 1);
    *output = (struct output){.file = file, .is_speedscope = values[FORMAT].word == SPEEDSCOPE};
    struct dt_stacks *stacks = dt_stacks_new(values[WHAT].word, values[BY].word);
    stacks->of_sink = output;
    return stacks;
}

/* The reasons for an empty flame graph, and what to do. */
static const char *const nothing[] = {
    [DT_STACKS_CALLS] =
        "no functions were traced: `dyntrace profile` samples them, or trace some with "
        "`dyntrace:follow(#{functions => ...})`, see docs/configuration.md",
    [DT_STACKS_WAITS] = "no waits were recorded: record scheduling for longer than processes wait",
};

/* -- Formats ---------------------------------------------------------------------------- */

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

static void put_folded(const struct dt_stacks *stacks, struct dt_file *to) {
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

static void put_speedscope(const struct dt_stacks *stacks, const char *name, struct dt_file *to) {
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

/* -- The output ------------------------------------------------------------------------- */

static bool finish(void *data, const struct dt_model *model, GError **error) {
    (void)model;
    struct dt_stacks *stacks = data;
    struct output *output = stacks->of_sink;
    if (dt_stacks_are_empty(stacks)) {
        dt_nothing(nothing[stacks->what]);
        dt_stacks_remark(stacks, nothing[stacks->what]);
    }
    if (output->is_speedscope)
        put_speedscope(stacks,
                       stacks->what == DT_STACKS_CALLS ? "calls by own time" : "waits by time",
                       output->file);
    else
        put_folded(stacks, output->file);
    return dt_file_close(g_steal_pointer(&output->file), error);
}

static void free_sink(void *data) {
    struct dt_stacks *stacks = data;
    struct output *output = stacks->of_sink;

    dt_file_discard(output->file);
    g_free(output);
    dt_stacks_free(stacks);
}

const struct dt_sink dt_sink_flame = {
    .description = "folded stacks, or JSON for speedscope",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .collector = &dt_stacks_collector,
};
