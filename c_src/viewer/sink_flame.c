#include <string.h>

#include "viewer/flame_parts.h"
#include "viewer/flame_write.h"

enum { PATH, FORMAT, WHAT, BY };

static const struct dt_param params[] = {
    [PATH] = {"path", DT_PARAM_STRING, "-", "the file to write; - is standard output"},
    [FORMAT] = {"format", DT_PARAM_STRING, "folded", "folded, or speedscope"},
    [WHAT] = {"what", DT_PARAM_STRING, "calls", "calls, or waits"},
    [BY] = {"by", DT_PARAM_STRING, "process",
            "what a stack starts with: process, initial (the initial call), or none"},
    {0},
};

/* The words of a parameter, in the order of its enum. */
struct words {
    unsigned param;
    const char *words[4];
};

static const struct words formats = {FORMAT, {"folded", "speedscope"}};
static const struct words whats = {WHAT, {"calls", "waits"}};
static const struct words bys = {BY, {"process", "initial", "none"}};

/* How it is written. */
struct output {
    struct dt_file *file;
    bool is_speedscope;
};

/* The number of the given word, or -1 with an error. */
static int word_of(const struct words *of, const union dt_value *values, GError **error) {
    const char *given = values[of->param].string;
    for (int i = 0; of->words[i]; i++)
        if (strcmp(of->words[i], given) == 0)
            return i;
    g_set_error(error, DT_ERROR, 0, "parameter %s: it is %s, not %s", params[of->param].name,
                params[of->param].meaning, given);
    return -1;
}

static void *start(const union dt_value *values, GError **error) {
    int format = word_of(&formats, values, error);
    int what = format < 0 ? -1 : word_of(&whats, values, error);
    int by = what < 0 ? -1 : word_of(&bys, values, error);
    if (by < 0)
        return NULL;
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    if (!file)
        return NULL;
    struct output *output = g_new0(struct output, 1);
    *output = (struct output){.file = file, .is_speedscope = format == 1};
    struct dt_flame *flame = dt_flame_new((enum dt_flame_what)what, (enum dt_flame_by)by);
    flame->of_sink = output;
    return flame;
}

static bool finish(void *s, const struct dt_model *model, GError **error) {
    (void)model;
    struct dt_flame *flame = s;
    struct output *output = flame->of_sink;
    if (output->is_speedscope)
        dt_flame_speedscope(flame,
                            flame->what == DT_FLAME_CALLS ? "calls by own time" : "waits by time",
                            output->file);
    else
        dt_flame_folded(flame, output->file);
    return dt_file_close(g_steal_pointer(&output->file), error);
}

static void sink_free(void *s) {
    struct dt_flame *flame = s;
    struct output *output = flame->of_sink;
    dt_file_discard(output->file);
    g_free(output);
    dt_flame_free(flame);
}

const struct dt_sink dt_sink_flame = {
    .name = "flame",
    .description = "folded stacks, or the JSON of speedscope",
    .params = params,
    .start = start,
    .finish = finish,
    .free = sink_free,
    DT_FLAME_COLLECTS,
};
