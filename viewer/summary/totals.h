/*
 * A bounded table of names: what all processes of a registered name, or of an initial call if they
 * have no name, did together. Unlike the table of processes, it covers all of them.
 */
#pragma once

#include "summary/activity.h"
#include "summary/slices.h"

enum dt_total_number {
    DT_TOTAL_RUN, /* ns on a CPU */
    DT_TOTAL_RUNS,
    DT_TOTAL_COLLECTING, /* ns */
    DT_TOTAL_COLLECTIONS,
    DT_TOTAL_SENT,
    DT_TOTAL_RECEIVED,
    DT_TOTAL_STARTED,
    DT_TOTAL_CRASHED,
    DT_TOTALS
};

struct dt_total_kind {
    const char *name, *unit;
    enum dt_recorded_kind recorded; /* the events that the recording needs for it */
};
extern const struct dt_total_kind dt_total_kinds[DT_TOTALS];

/* Samples of a process's memory in bytes, or of its queue. */
struct dt_level {
    uint64_t sum, max;
};

struct dt_total {
    struct dt_seen_node *node;
    char *name; /* "": neither a name nor an initial call is known */
    struct dt_slices of[DT_TOTALS];
    uint64_t samples;
    struct dt_level memory, queue;
};

struct dt_total_table {
    GHashTable *rows;
    struct dt_total *others; /* of the names beyond the bound */
};
void dt_totals_init(struct dt_total_table *table);
void dt_totals_free(struct dt_total_table *table);

/* Without an actor, or for ports, these do nothing. */
void dt_totals_add(struct dt_total_table *table, struct dt_actor *actor,
                   enum dt_total_number number, int64_t time, uint64_t amount);
void dt_totals_sample(struct dt_total_table *table, struct dt_actor *actor, uint64_t memory,
                      uint64_t queue);
/* To be called when the process gets another name. */
void dt_totals_renamed(struct dt_actor *actor);
GPtrArray *dt_totals_sorted(const struct dt_total_table *table); /* the caller frees it */
