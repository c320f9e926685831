/* The life cycle of processes and ports: they begin, exit, are linked and get names. */
#pragma once

#include "model/entities/process.h"

void dt_process_event(struct node *node, const struct dt_recorded *event);

/* Distinguishes crashes from orderly exits. Orderly exits are: normal, shutdown, {shutdown, _};
   `killed` by the shutdown of the supervisor, which unlinks the child first; and reasons that OTP's
   own processes use for a regular end. */
bool dt_is_crash(const struct process *p, const char *reason);
