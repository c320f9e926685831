/*
 * Kinds of short-lived processes: the workers of a pool, or those that crash and are started again.
 * A picture shows many of one kind as one.
 *
 * One kind: the same node, parent, registered name and initial call, and a label that begins the
 * same; of ports the same node, and driver or command. So a process that has a name of its own is
 * shown alone.
 */
#ifndef DT_VIEWER_SHARED_KINDS_H
#define DT_VIEWER_SHARED_KINDS_H

#include "shared/told.h"

enum {
    /* So few are shown one by one. */
    DT_KIND_LEAST = 4,
    /* Beyond these kinds, processes are shown one by one. */
    DT_KINDS_MOST = 10000,
};

/* Whether it began and ended in the recording, and lived for a small part of `whole`, ns. */
bool dt_is_short_lived(const struct dt_process *process, int64_t whole);
/* The key of its kind, to be freed by g_free; NULL if nothing is known of it but its pid. */
char *dt_kind_of(const struct dt_process *process);
/* What so many of a kind are called: "shop_oven × 62". */
char *dt_kind_show(const char *name, const char *initial, unsigned members);

#endif
