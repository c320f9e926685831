/*
 * The nodes that a recording shows: their names, and what it has of each.
 */
#ifndef DT_VIEWER_WHO_NODES_H
#define DT_VIEWER_WHO_NODES_H

#include <glib.h>

#include "shared/told.h"

/* What a recording has, and the word for it. */
#define DT_TOLD_KINDS(KIND)                                                                        \
    KIND(SCHEDULING, "scheduling")                                                                 \
    KIND(SENDS, "sends")                                                                           \
    KIND(DELIVERIES, "deliveries")                                                                 \
    KIND(CALLS, "calls")                                                                           \
    KIND(RETURNS, "returns")                                                                       \
    KIND(COLLECTIONS, "collections")                                                               \
    KIND(SPAWNS, "spawns")                                                                         \
    KIND(EXITS, "exits")                                                                           \
    KIND(LINKS, "links")                                                                           \
    KIND(PORTS, "ports")                                                                           \
    KIND(OUTPUT, "output")                                                                         \
    KIND(SERVER_CALLS, "server calls")                                                             \
    KIND(SPANS, "spans")                                                                           \
    KIND(MARKS, "marks")                                                                           \
    KIND(COUNTERS, "counters")                                                                     \
    KIND(LOG, "log")                                                                               \
    KIND(MONITOR, "monitor")                                                                       \
    KIND(SAMPLES, "samples")

enum dt_told {
#define KIND(name, word) DT_TOLD_##name,
    DT_TOLD_KINDS(KIND)
#undef KIND
        DT_TOLD
};
extern const char *const dt_told_words[DT_TOLD];

static inline bool dt_is_told(uint32_t told, enum dt_told kind) {
    return told & 1U << kind;
}

struct dt_seen_node {
    unsigned number; /* from 1, as tables of several nodes show it */
    char *name, *hostname, *otp;
    int64_t os_pid, first, last;
    uint64_t processes;
    const struct dt_clock *clock; /* NULL if the recording has one */
    uint32_t told;                /* bit n: enum dt_told n */
    bool has_receipts;            /* deliveries to processes are told, not only to ports */
};

/* All of them, by the number that the model gives them; NULL where it is unknown. */
struct dt_seen_nodes {
    GPtrArray *by_number;
};
void dt_seen_nodes_init(struct dt_seen_nodes *nodes);
void dt_seen_nodes_free(struct dt_seen_nodes *nodes);

/* NULL of NULL. */
struct dt_seen_node *dt_seen_node(struct dt_seen_nodes *nodes, const struct dt_node *node);
/* Takes over what the model knows of it now. */
struct dt_seen_node *dt_seen_node_learn(struct dt_seen_nodes *nodes, const struct dt_node *node);
/* "" if it is unknown. */
const char *dt_seen_node_name(const struct dt_seen_node *node);

bool dt_seen_nodes_are_several(const struct dt_seen_nodes *nodes);
/* Those that are known, in order; the caller frees the array. */
GPtrArray *dt_seen_nodes_known(const struct dt_seen_nodes *nodes);

#endif
