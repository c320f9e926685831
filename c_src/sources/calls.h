/*
 * Calls: how often each function is called, and a budget of calls.
 *
 * A trace pattern of a whole module includes functions that are called a million times per second.
 * An event takes many times as long as such a call. So the calls of the application's tracer are
 * counted by function, and have a budget in addition to that of all events. When it is spent, the
 * VM makes no more call events; the worker reads the counts, clears the functions that were called
 * most, and sets a new budget (dyntrace_call_budget).
 */
#ifndef DT_SOURCES_CALLS_H
#define DT_SOURCES_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sources/nif.h"
#include "sources/routes.h"

#define DT_CALLS_INFINITE INT64_MAX

extern _Atomic int64_t dt_calls_left;

/* For the `enabled` callback of a call: whether the budget has a call left. */
static inline bool dt_calls_may_make(void) {
    return atomic_load_explicit(&dt_calls_left, memory_order_relaxed) > 0;
}

/* Counts a call of the application's tracer, and takes it from the budget. Without a budget nothing
   is counted, so schedulers do not write to shared memory. Removes the time of an earlier call
   (dt_call_times_forget). */
dt_noter dt_calls_note;

/* Calls | infinity: how many more there may be. */
dt_nif dt_calls_set_budget;

/* How often each function was called after the previous dt_calls_take: {[{{Module, Function,
   Arity}, Count}], Others}. `Others` counts the calls of functions that do not fit into the table.
 */
dt_nif dt_calls_take;

#endif
