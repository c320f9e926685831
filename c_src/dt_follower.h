/*
 * What the application's tracer, {dyntrace, dyntrace_follower}, may do: trace while its worker lives and
 * wants it, fire those probes that are served, as often as its budget of events allows.
 */
#ifndef DT_FOLLOWER_H
#define DT_FOLLOWER_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dt_event.h"

/* The worker is the one that called this last. Answers who it was before: a pid, or undefined, which it
   is again in a library that is loaded anew. */
ERL_NIF_TERM dt_follower_claim(ErlNifEnv *env);

/* Whether the worker has anything traced. */
void dt_follower_activate(bool active);

/*
 * What the VM asks as trace_status, each time when a traced process is scheduled. From a process
 * that is told that the tracer is not alive it takes the tracer and all flags: so nothing that a
 * worker has set outlives it, and nobody has to walk over all processes.
 */
bool dt_follower_is_alive(ErlNifEnv *env);

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
