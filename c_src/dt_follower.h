/*
 * What the application's tracer, {dyntrace, dyntrace_follower}, may do: fire those probes that are
 * served, as often as its budget of events allows.
 */
#ifndef DT_FOLLOWER_H
#define DT_FOLLOWER_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "dt_event.h"

#define DT_BUDGET_INFINITE LONG_MAX

/* How many more events may be fired: a load that would hurt is skipped from there on, and
   counted, until whoever sets the budget sets it anew. */
void dt_follower_budget(long events);

/* Whether there was one left for this event; if not, it counts as skipped. */
bool dt_follower_take(void);

unsigned long dt_follower_skipped(void);

/* A trace flag yields the events of several probes: those that are not served never fire by it. */
void dt_follower_serve(enum dt_probe probe, bool served);

extern atomic_bool dt_follower_unserved[DT_PROBES];

static inline bool dt_follower_serves(enum dt_probe probe) {
    return !atomic_load_explicit(&dt_follower_unserved[probe], memory_order_relaxed);
}

#endif
