/*
 * What the application's tracer, {dyntrace, dyntrace_follower}, may do: fire those probes that are
 * served, as often as its budget of events allows.
 */
#ifndef DT_FOLLOWER_H
#define DT_FOLLOWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dt_event.h"

#define DT_BUDGET_INFINITE INT64_MAX

/* How many more events may be fired, until whoever sets the budget sets it anew. */
void dt_follower_budget(int64_t events);

/* Whether one is left, for an event that the VM asks about; if not, the event is not to be made,
   and counts as skipped. */
bool dt_follower_may(void);

/* Takes one for an event that was made; if there is none, the event counts as skipped: it was asked
   about before, or is of a kind that comes unasked. */
bool dt_follower_take(void);

/* Events that were skipped by either: each is counted once. */
uint64_t dt_follower_skipped(void);

/* A trace flag yields the events of several probes: those that are not served never fire by it. */
void dt_follower_serve(enum dt_probe probe, bool served);

extern atomic_bool dt_follower_unserved[DT_PROBES];

static inline bool dt_follower_serves(enum dt_probe probe) {
    return !atomic_load_explicit(&dt_follower_unserved[probe], memory_order_relaxed);
}

#endif
