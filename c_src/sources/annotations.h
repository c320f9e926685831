/*
 * Annotations: probes that Erlang code fires itself.
 *
 * dyntrace.erl first asks, by `wants_…`, whether the probe is enabled. Only then does it fetch the
 * process's tag, or read the clock, and fire: otherwise an annotation is one call that reads a
 * counter of each backend. dyntrace.erl checks the arguments; still, all NIFs accept any.
 */
#ifndef DT_USER_H
#define DT_USER_H

#include <erl_nif.h>

typedef ERL_NIF_TERM dt_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* true | false: whether the probe is enabled. */
dt_nif dt_user_wants_i4s4, dt_user_wants_mark, dt_user_wants_span;
dt_nif dt_user_wants_n; /* Label */

/* true | false: whether the probe was enabled, and fired. */
dt_nif dt_user_trace_s1;   /* Message */
dt_nif dt_user_trace_i4s4; /* Tag, I1, …, I4, S1, …, S4 */
dt_nif dt_user_trace_n;    /* Label, Tag, I1, …, I4, S1, …, S4 */
dt_nif dt_user_mark;       /* Name, Value, Text */
dt_nif dt_user_span_start; /* Name, Id */
dt_nif dt_user_span_stop;  /* Name, Id, Duration, Outcome */

/* clang-format off */
#define DT_USER_FUNCTIONS                                                                          \
    {"wants_i4s4", 0, dt_user_wants_i4s4, 0}, {"wants_n", 1, dt_user_wants_n, 0},                  \
    {"wants_mark", 0, dt_user_wants_mark, 0}, {"wants_span", 0, dt_user_wants_span, 0},            \
    {"user_trace_s1", 1, dt_user_trace_s1, 0}, {"user_trace_i4s4", 9, dt_user_trace_i4s4, 0},      \
    {"user_trace_n_nif", 10, dt_user_trace_n, 0}, {"user_mark", 3, dt_user_mark, 0},               \
    {"user_span_start", 2, dt_user_span_start, 0}, {"user_span_stop", 4, dt_user_span_stop, 0},
/* clang-format on */

#endif
