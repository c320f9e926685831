/*
 * The limits of the application's tracer, {dyntrace, dyntrace_autotracer}: it traces while its worker
 * is alive and active, and fires those probes that are allowed, as often as its budget of events
 * permits.
 */
#ifndef DT_FOLLOWER_H
#define DT_FOLLOWER_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dt_event.h"

/* Makes the calling process the worker. Returns the worker before it, a pid, or undefined: in this
   library there was none. */
ERL_NIF_TERM dt_follower_claim(ErlNifEnv *env);

/* Sets whether the worker has anything traced. */
void dt_follower_activate(bool on);

/*
 * Whether the worker is active and alive. The VM asks for it, as trace_status, each time that it
 * schedules a traced process. If not, the VM takes the tracer and all flags from that process, so
 * flags do not outlive their worker, and no walk over all processes is needed.
 */
bool dt_follower_is_alive(ErlNifEnv *env);

#define DT_BUDGET_INFINITE INT64_MAX

/* Sets how many more events may be fired; DT_BUDGET_INFINITE: any number. */
void dt_follower_budget(int64_t events);

/* For an event that the VM asks about: whether the budget has one left. If not, the event counts as
   skipped, and the VM must not make it. */
bool dt_follower_may(void);

/* For an event that the VM has made: takes one from the budget. If there is none, the event counts
   as skipped. That happens when other schedulers were faster, or for events that come unasked. */
bool dt_follower_take(void);

/* Events that dt_follower_may or dt_follower_take has skipped: each is counted once. */
uint64_t dt_follower_skipped(void);

/* Sets whether the probe is allowed. One trace flag yields the events of several probes; those that
   are not allowed never fire for the application's tracer. */
void dt_follower_allow(enum dt_probe probe, bool allowed);

extern atomic_bool dt_follower_denied[DT_PROBES];

static inline bool dt_follower_allows(enum dt_probe probe) {
    return !atomic_load_explicit(&dt_follower_denied[probe], memory_order_relaxed);
}

#endif
