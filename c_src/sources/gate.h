/*
 * The gate: the limits of the application's tracer, {dyntrace, dyntrace_autotracer}. It traces
 * while its worker is alive and active, and fires the allowed probes, as often as its budget of
 * events permits. Tracers that users set themselves have no gate.
 */
#ifndef DT_SOURCES_GATE_H
#define DT_SOURCES_GATE_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "catalogue/atoms.h"
#include "catalogue/event.h"

/* Whether the state is that of the application's tracer. */
static inline bool dt_gate_is_for(ERL_NIF_TERM state) {
    return state == atom_dyntrace_autotracer;
}

/* Makes the calling process the worker. Returns the previous worker, a pid, or undefined if this
   library had none. */
ERL_NIF_TERM dt_gate_claim(ErlNifEnv *env);

/* Sets whether the worker has set any tracing. */
void dt_gate_activate(bool on);

/* Holds the events of these groups (one bit each) and of no others: they are discarded while the
   worker sets or clears their trace flags process by process. A new worker holds nothing. */
void dt_gate_hold(uint64_t groups);

extern _Atomic uint64_t dt_gate_held;

static inline bool dt_gate_holds(unsigned group) {
    return atomic_load_explicit(&dt_gate_held, memory_order_relaxed) >> group & 1;
}

/*
 * Whether the worker is active and alive. The VM requests it, as trace_status, whenever it
 * schedules a traced process. If not, the VM removes the tracer and all flags of that process, so
 * flags do not outlive their worker, without a walk over all processes.
 */
bool dt_gate_is_open(ErlNifEnv *env);

#define DT_BUDGET_INFINITE INT64_MAX

/* Sets how many more events may be fired; DT_BUDGET_INFINITE: any number. */
void dt_gate_set_budget(int64_t events);

/* How many events of the budget are left; negative when overdrawn. */
int64_t dt_gate_left(void);

/* For an `enabled` callback: whether the budget has an event left. If not, the event counts as
   skipped, and the VM must not make it. */
bool dt_gate_may_make(void);

/* For an event that the VM has made: takes it from the budget. If nothing is left, the event counts
   as skipped. That happens if other schedulers were faster, or for events that the VM makes without
   calling `enabled`. */
bool dt_gate_take(void);

/* Events that dt_gate_may_make or dt_gate_take has skipped: each is counted once. */
uint64_t dt_gate_skipped(void);

/* Sets whether the probe is allowed. One trace flag yields the events of several probes; those that
   are not allowed never fire for the application's tracer. */
void dt_gate_allow(enum dt_probe probe, bool allowed);

extern atomic_bool dt_gate_denied[DT_PROBES];

static inline bool dt_gate_allows(enum dt_probe probe) {
    return !atomic_load_explicit(&dt_gate_denied[probe], memory_order_relaxed);
}

#endif
