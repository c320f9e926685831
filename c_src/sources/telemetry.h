/*
 * Telemetry: the calls of `telemetry:execute/3`, by which Elixir's libraries report what they do.
 */
#ifndef DT_SOURCES_TELEMETRY_H
#define DT_SOURCES_TELEMETRY_H

#include <erl_nif.h>
#include <stdbool.h>

/* Called while the library is loaded, with the number of native time units per second: the unit of
   durations. False if that is not a number. */
bool dt_telemetry_start(ErlNifEnv *env, ERL_NIF_TERM units_per_second);

#endif
