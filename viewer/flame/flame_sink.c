/* The sink `flame`: stacks for flame graphs, folded or as JSON for speedscope. */
#include "flame/flame_formats.h"
#include "shared/nothing.h"
#include "shared/sink.h"

enum { PATH, FORMAT, WHAT, BY };

/* Words of parameters, in the order of their enums. */
enum { FOLDED, SPEEDSCOPE };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [FORMAT] = {.name = "format",
                .type = DT_PARAM_WORD,
                .standard = "folded",
                .meaning = "one line per stack, or JSON for speedscope",
                .words = (const char *const[]){"folded", "speedscope", NULL}},
    [WHAT] = {.name = "what",
              .type = DT_PARAM_WORD,
              .standard = "calls",
              .meaning = "time in calls, or time of waits by function",
              .words = (const char *const[]){"calls", "waits", NULL}},
    [BY] = {.name = "by",
            .type = DT_PARAM_WORD,
            .standard = "process",
            .meaning = "first frames of a stack: node and process, node and initial call, or none",
            .words = (const char *const[]){"process", "initial", "none", NULL}},
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

static bool finish(void *data, const struct dt_model *model, GError **error) {
    (void)model;
    struct dt_stacks *stacks = data;
    struct output *output = stacks->of_sink;
    if (dt_stacks_are_empty(stacks)) {
        dt_nothing(nothing[stacks->what]);
        dt_stacks_remark(stacks, nothing[stacks->what]);
    }
    if (output->is_speedscope)
        dt_flame_speedscope(stacks,
                            stacks->what == DT_STACKS_CALLS ? "calls by own time" : "waits by time",
                            output->file);
    else
        dt_flame_folded(stacks, output->file);
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
    DT_STACKS_COLLECTS,
};
