/*
 * How many trace events the application's tracer may still fire: a load that would hurt is
 * skipped from there on, and counted, until whoever sets the budget sets it anew.
 */
#ifndef DT_BUDGET_H
#define DT_BUDGET_H

#include <limits.h>
#include <stdbool.h>

#define DT_BUDGET_INFINITE LONG_MAX

void dt_budget_set(long events);

/* Whether there was one left for this event; if not, it counts as skipped. */
bool dt_budget_take(void);

unsigned long dt_budget_skipped(void);

#endif
