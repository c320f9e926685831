/*
 * Exits whose reason may be a result or the cause of a crash. They count as crashes if a linked
 * process exits with the same reason soon after, because then it does not trap exits.
 */
#pragma once

#include "summary/occurrences.h"

struct dt_unclear_exits {
    GQueue recent; /* struct dt_listed, oldest first */
};

void dt_unclear_free(struct dt_unclear_exits *exits);
/* Takes ownership as dt_list_add does. */
void dt_unclear_add(struct dt_unclear_exits *exits, struct dt_listed exit);
/* Handles the exit of a process with this reason: moves the exits that caused it to the crashes. */
void dt_unclear_resolve(struct dt_unclear_exits *exits, struct dt_list *crashes,
                        const struct dt_actor *exited, int64_t time, const char *reason);
