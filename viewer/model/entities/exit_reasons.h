/* Distinguishes crashes from orderly exits of processes and ports. */
#pragma once

#include "model/entities/process.h"

/* Orderly exits are: normal, shutdown, {shutdown, _}; `killed` by the shutdown of the supervisor,
   which unlinks the child first; and reasons that OTP's own processes use for a regular end. */
bool dt_is_crash(const struct process *p, const char *reason);
