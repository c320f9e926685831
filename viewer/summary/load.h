/*
 * The load of each node over time: run time, garbage collection, sends and calls in each step.
 * Whenever the recording outgrows the steps, their length doubles, so the length of the recording
 * need not be known in advance.
 */
#pragma once

#include "actors/seen_nodes.h"

enum { DT_STEPS = 300 };

enum dt_load_number {
    DT_LOAD_RUN,
    DT_LOAD_DIRTY_IO,
    DT_LOAD_COLLECTING,
    DT_LOAD_RUNNABLE,
    DT_LOAD_SENT,
    DT_LOAD_CALLS,
    DT_LOADS
};

struct dt_load_kind {
    const char *name;
    enum dt_recorded_kind recorded; /* the events that the recording needs for it */
    bool is_time;                   /* ns per step, else a number */
};
extern const struct dt_load_kind dt_load_kinds[DT_LOADS];

/* The period of a recording; DT_NO_VALUE before the first event. */
struct dt_period {
    int64_t begin, end;
};

struct dt_load_series {
    int64_t of[DT_LOADS][DT_STEPS];
};

struct dt_load {
    int64_t step;     /* ns; 0: no data yet */
    GPtrArray *nodes; /* struct dt_load_series, by node number; NULL: no data */
};
void dt_load_init(struct dt_load *load);
void dt_load_free(struct dt_load *load);

/* Without a node, these do nothing. */
void dt_load_time(struct dt_load *load, struct dt_period *period, const struct dt_seen_node *node,
                  enum dt_load_number number, int64_t begin, int64_t end);
void dt_load_count(struct dt_load *load, struct dt_period *period, const struct dt_seen_node *node,
                   enum dt_load_number number, int64_t time);

/* The steps of a node; dt_load_steps returns their number. */
const int64_t *dt_load_of(const struct dt_load *load, const struct dt_seen_node *node,
                          enum dt_load_number number);
unsigned dt_load_steps(const struct dt_load *load, const struct dt_period *period);
/* The length of a step; the last one ends with the recording. */
int64_t dt_load_ns(const struct dt_load *load, const struct dt_period *period, unsigned step);
