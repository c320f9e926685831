/*
 * Stacks with the time spent in each, in bounded memory: calls by their own time, or functions in
 * which processes wait. The sink `flame` writes them; the page embeds the stacks of calls.
 */
#pragma once

#include "shared/sink.h"

enum dt_stacks_what { DT_STACKS_CALLS, DT_STACKS_WAITS };

/* The outermost frames of a stack: node and process, node and initial call, none. */
enum dt_stacks_by { DT_STACKS_BY_PROCESS, DT_STACKS_BY_INITIAL, DT_STACKS_BY_NONE };

struct dt_stacks_frame;

struct dt_stacks {
    enum dt_stacks_what what;
    enum dt_stacks_by by;
    struct dt_stacks_frame *root, *others;
    GHashTable *frames;    /* by parent and name */
    GHashTable *names;     /* distinct names */
    GHashTable *processes; /* struct dt_process -> struct running */
    void *of_sink;         /* data of the sink that owns the stacks */
};

struct dt_stacks *dt_stacks_new(enum dt_stacks_what what, enum dt_stacks_by by);
void dt_stacks_free(struct dt_stacks *stacks);

/* The functions that collect. Their data has to be a struct dt_stacks. */
extern const struct dt_sink dt_stacks_collector;

/* Whether all stacks are without time. */
bool dt_stacks_are_empty(const struct dt_stacks *stacks);
/* Adds a stack with a single frame, whose name is a remark, for an otherwise empty flame graph. */
void dt_stacks_remark(struct dt_stacks *stacks, const char *remark);

/* Visits each stack that has its own time, outermost frame first and siblings by name. Names are
 * valid only during the call. */
typedef void dt_stacks_visit(const char *const *names, unsigned depth, uint64_t ns, void *data);
void dt_stacks_each(const struct dt_stacks *stacks, dt_stacks_visit *each, void *data);

/* The tree as JSON: {"name","value","own","children":[...]}, in ns; `value` is `own` plus the
 * values of all children. */
void dt_stacks_json(const struct dt_stacks *stacks, GString *to);
