/*
 * How long calls take: the times at which traced calls began, until they return.
 */
#ifndef DT_SOURCES_CALL_TIMES_H
#define DT_SOURCES_CALL_TIMES_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sources/parts.h"

/* Stores that the process calls the function now. In a recursion, the last call replaces those
   before, so a duration is never too long. */
void dt_call_times_begin(ERL_NIF_TERM process, const struct dt_location *f);

/* Removes the call. Returns false if it is not stored: it was traced only from its return on, or
   too many calls of other processes have begun since. */
bool dt_call_times_end(ERL_NIF_TERM process, const struct dt_location *f, uint64_t *duration_ns);

/* Whether any call has been stored. */
extern atomic_bool dt_call_times_used;

/* Removes an earlier call of the process, for an event of a new one. That one may not be stored,
   because the budget of events is spent or the probe is not enabled. If it returns while the probe
   fires again, it must not have the time of the earlier call. */
void dt_call_times_forget(ERL_NIF_TERM process, const struct dt_location *f);

#endif
