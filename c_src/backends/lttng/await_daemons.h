/*
 * Checks whether the session daemons respond.
 */
#ifndef DT_BACKENDS_LTTNG_AWAIT_DAEMONS_H
#define DT_BACKENDS_LTTNG_AWAIT_DAEMONS_H

#include "backends/lttng/daemons.h"

/* Returns when each running daemon has answered within a second. Calls `waiting` with a daemon that
   has not. */
void dt_lttng_daemons_await(const struct dt_lttng_daemons *daemons,
                            void (*waiting)(const struct dt_lttng_daemon *daemon));

#endif
