/*
 * The nodes of a recording: their names, and the kinds of data recorded for each.
 */
#pragma once

#include <glib.h>

#include "shared/model_events.h"

/* Kinds of recorded data, with their display names. */
#define DT_EACH_RECORDED_KIND(KIND)                                                                \
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
    KIND(TELEMETRY, "telemetry")                                                                   \
    KIND(MARKS, "marks")                                                                           \
    KIND(COUNTERS, "counters")                                                                     \
    KIND(LOG, "log")                                                                               \
    KIND(MONITOR, "monitor")                                                                       \
    KIND(SAMPLES, "samples")                                                                       \
    KIND(OTHERS, "other events")

enum dt_recorded_kind {
#define KIND(name, word) DT_RECORDED_##name,
    DT_EACH_RECORDED_KIND(KIND)
#undef KIND
        DT_RECORDED_KINDS
};
extern const char *const dt_recorded_kind_words[DT_RECORDED_KINDS];

static inline bool dt_is_recorded(uint32_t recorded, enum dt_recorded_kind kind) {
    return recorded & 1U << kind;
}

struct dt_seen_node {
    unsigned number; /* from 1, as displayed in tables of several nodes */
    char *name, *hostname, *otp;
    int64_t os_pid, first, last, untraced;
    uint64_t processes;
    const struct dt_clock *clock; /* NULL if the recording has a single clock */
    uint32_t recorded;            /* bit n: enum dt_recorded_kind n */
    bool was_untraced;            /* for longer than it takes to set trace flags */
    bool has_receipts;            /* has deliveries to processes, not only to ports */
    bool is_elixir;               /* Elixir's application runs in it */
};

/* All nodes, indexed by their number in the model; NULL if not yet seen. */
struct dt_seen_nodes {
    GPtrArray *by_number;
};
void dt_seen_nodes_init(struct dt_seen_nodes *nodes);
void dt_seen_nodes_free(struct dt_seen_nodes *nodes);

/* Returns NULL for NULL. */
struct dt_seen_node *dt_seen_node(struct dt_seen_nodes *nodes, const struct dt_node *node);
/* Copies the model's current data of the node. */
struct dt_seen_node *dt_seen_node_learn(struct dt_seen_nodes *nodes, const struct dt_node *node);
/* "" if it is unknown. */
const char *dt_seen_node_name(const struct dt_seen_node *node);

bool dt_seen_nodes_are_several(const struct dt_seen_nodes *nodes);
/* The nodes seen so far, in order; the caller frees the array. */
GPtrArray *dt_seen_nodes_known(const struct dt_seen_nodes *nodes);
/* The ns in which its processes were traced; 0 if unknown. */
int64_t dt_seen_node_traced(const struct dt_seen_node *node);
/* The ns in which no process was traced, because tracing was paused or not requested; of nodes that
   ran at the same time, the shortest of their times. */
int64_t dt_seen_nodes_untraced(const struct dt_seen_nodes *nodes);
