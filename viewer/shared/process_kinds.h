/*
 * Kinds of short-lived processes, for example the workers of a pool, or a process that crashes and
 * is restarted repeatedly. Sinks display many processes of one kind as one.
 *
 * Processes are of one kind if they have the same node, parent, registered name, initial call and
 * begin of the label; ports, if they have the same node and the same driver or command. A process
 * with a unique name is therefore displayed alone.
 */
#pragma once

#include "shared/model_events.h"

enum {
    /* The smallest number of processes that are displayed as one. */
    DT_KIND_LEAST = 4,
    /* The maximum number of kinds; processes of further kinds are displayed one by one. */
    DT_KINDS_MOST = 10000,
};

/* Whether it began and ended in the recording, and lived for a small part of `whole` (ns). */
bool dt_is_short_lived(const struct dt_process *process, int64_t whole);
/* The key of its kind, to be freed by g_free; NULL if only its pid is known. */
char *dt_kind_of(const struct dt_process *process);
/* The displayed name of several processes of a kind: "shop_oven × 62". */
char *dt_kind_show(const char *name, const char *initial, unsigned members);
