/*
 * Processes that a purge of code killed. erts_code_purger reports only that it killed some, so
 * these are the processes that were killed while it worked on a module.
 */
#pragma once

#include "summary/occurrences.h"

struct dt_purges {
    GHashTable *pending;   /* struct dt_seen_node -> what its erts_code_purger works on */
    struct dt_list killed; /* `text` is the module */
};
void dt_purges_init(struct dt_purges *purges);
void dt_purges_free(struct dt_purges *purges);
/* A message to or from erts_code_purger, or any other. */
void dt_purges_sent(struct dt_purges *purges, struct dt_seen_node *node,
                    const struct dt_message *message);
void dt_purges_exited(struct dt_purges *purges, struct dt_actor *actor, const struct dt_exit *exit);
/* Events were lost: what it works on is unknown. */
void dt_purges_lost(struct dt_purges *purges);
/* Whether a purge killed the process. */
bool dt_purges_killed(const struct dt_purges *purges, const struct dt_actor *actor);
