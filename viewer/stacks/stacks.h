/*
 * Stacks with the time that was spent in each, in bounded memory: of calls by their own time, or
 * of places where processes wait. The flame graph writes them; the page embeds those of calls.
 */
#ifndef DT_VIEWER_STACKS_STACKS_H
#define DT_VIEWER_STACKS_STACKS_H

#include "shared/sink.h"

enum dt_stacks_what { DT_STACKS_CALLS, DT_STACKS_WAITS };

/* The frames below those of a stack: node and process, node and initial call, none. */
enum dt_stacks_by { DT_STACKS_BY_PROCESS, DT_STACKS_BY_INITIAL, DT_STACKS_BY_NONE };

struct dt_stacks_frame;

struct dt_stacks {
    enum dt_stacks_what what;
    enum dt_stacks_by by;
    struct dt_stacks_frame *root, *others;
    GHashTable *frames;    /* by parent and name */
    GHashTable *names;     /* each name once */
    GHashTable *processes; /* struct dt_process -> struct running */
    void *of_sink;         /* of a sink whose data is the stacks */
};

struct dt_stacks *dt_stacks_new(enum dt_stacks_what what, enum dt_stacks_by by);
void dt_stacks_free(struct dt_stacks *stacks);

/* The functions of a sink that collect them, which are the sink's data. */
void dt_stacks_call_begin(void *s, struct dt_frame *frame);
void dt_stacks_call_end(void *s, struct dt_frame *frame);
void dt_stacks_interval(void *s, const struct dt_interval *interval);
void dt_stacks_process_gone(void *s, struct dt_process *process);

#define DT_STACKS_COLLECTS                                                                         \
    .call_begin = dt_stacks_call_begin, .call_end = dt_stacks_call_end,                            \
    .interval = dt_stacks_interval, .process_gone = dt_stacks_process_gone

/* Whether no stack has any time. */
bool dt_stacks_are_empty(const struct dt_stacks *stacks);
/* Adds a stack of one frame that has a remark, so that an empty picture shows it. */
void dt_stacks_remark(struct dt_stacks *stacks, const char *remark);

/* Each stack that has time of its own, the outermost frame first; brothers by name. Names are valid
 * until the call's end. */
typedef void dt_stacks_visit(const char *const *names, unsigned depth, uint64_t ns, void *data);
void dt_stacks_each(const struct dt_stacks *stacks, dt_stacks_visit *each, void *data);

/* A tree as JSON: {"name","value","own","children":[...]}, in ns; `value` is `own` and that of all
 * children. */
void dt_stacks_json(const struct dt_stacks *stacks, GString *to);

#endif
