/*
 * Stacks with the time that was spent in each, in bounded memory: of calls by their own time, or
 * of places where processes wait.
 *
 * Every function of dt_flame_collects takes a struct dt_flame.
 */
#ifndef DT_VIEWER_FLAME_H
#define DT_VIEWER_FLAME_H

#include "viewer/sink.h"

enum dt_flame_what { DT_FLAME_CALLS, DT_FLAME_WAITS };

/* The frames below those of a stack: node and process, node and initial call, none. */
enum dt_flame_by { DT_FLAME_BY_PROCESS, DT_FLAME_BY_INITIAL, DT_FLAME_BY_NONE };

struct dt_flame;

struct dt_flame *dt_flame_new(enum dt_flame_what what, enum dt_flame_by by);
void dt_flame_free(struct dt_flame *flame);

/* The functions that collect; those that it does not need are NULL. */
extern const struct dt_sink dt_flame_collects;

/* Each stack that has time of its own, the outermost frame first; brothers by name. Names are valid
 * until the call's end. */
typedef void dt_flame_stack(const char *const *names, unsigned depth, uint64_t ns, void *data);
void dt_flame_each(const struct dt_flame *flame, dt_flame_stack *each, void *data);

/* A tree as JSON: {"name","value","own","children":[...]}, in ns; `value` is `own` and that of all
 * children. */
void dt_flame_json(const struct dt_flame *flame, GString *to);

#endif
