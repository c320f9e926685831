#include "viewer/flame_parts.h"
#include "viewer/flame_write.h"

enum { PATH, FORMAT, WHAT, BY };

/* The numbers of words are values of enums. */
enum { FOLDED, SPEEDSCOPE };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [FORMAT] = {.name = "format",
                .type = DT_PARAM_WORD,
                .standard = "folded",
                .meaning = "a line per stack, or the JSON of speedscope",
                .words = (const char *const[]){"folded", "speedscope", NULL}},
    [WHAT] = {.name = "what",
              .type = DT_PARAM_WORD,
              .standard = "calls",
              .meaning = "what the time is of",
              .words = (const char *const[]){"calls", "waits", NULL}},
    [BY] = {.name = "by",
            .type = DT_PARAM_WORD,
            .standard = "process",
            .meaning = "what a stack starts with; initial is the initial call",
            .words = (const char *const[]){"process", "initial", "none", NULL}},
    {0},
};

/* How it is written. */
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
    struct dt_flame *flame = dt_flame_new(values[WHAT].word, values[BY].word);
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
