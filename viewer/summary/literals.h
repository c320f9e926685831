/*
 * Searches of all processes for literals that are about to be freed: the terms that
 * persistent_term:put/2 replaces or erase/1 removes, and those of a module that is purged. The VM
 * has a process for that, which asks each process of the node; they search their heaps, and copy
 * what they find.
 *
 *     a process in persistent_term:put/2 ──> is suspended, in erlang:bif_return_trap/2
 *       ──> erts_literal_area_collector: in erlang:bif_return_trap/2, ...   begins to ask all
 *                                        in release_area_switch/0           all have answered
 */
#pragma once

#include "summary/pairs.h"

struct dt_interval;

struct dt_literals {
    GHashTable *of_nodes;     /* struct dt_seen_node -> what is known of the next search */
    struct dt_pairs searches; /* by the process that caused them, NULL if unknown: see the texts */
};
extern const char dt_by_purge[], dt_by_put[], dt_by_last[]; /* of rows; the last: inferred */

void dt_literals_init(struct dt_literals *literals);
void dt_literals_free(struct dt_literals *literals);
void dt_literals_interval(struct dt_literals *literals, struct dt_actor *actor,
                          const struct dt_interval *interval);
void dt_literals_sent(struct dt_literals *literals, struct dt_seen_node *node,
                      const struct dt_message *message);
void dt_literals_called(struct dt_literals *literals, struct dt_actor *actor, const char *function,
                        int64_t time);
