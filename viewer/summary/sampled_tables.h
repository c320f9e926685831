/* The ETS tables that have samples: a bounded table. */
#pragma once

#include "summary/sample_series.h"
#include "actors/actors.h"

/* An ETS table. */
struct dt_ets_table {
    struct dt_seen_node *node;
    char *id, *name;
    struct dt_actor *owner;  /* the last one */
    struct dt_series memory; /* bytes */
    uint64_t objects;        /* in the last sample */
};

struct dt_ets_tables {
    GHashTable *rows; /* struct dt_ets_table */
};
void dt_ets_tables_init(struct dt_ets_tables *tables);
void dt_ets_tables_free(struct dt_ets_tables *tables);
void dt_ets_tables_add(struct dt_ets_tables *tables, struct dt_actor *owner,
                       const struct dt_table_sample *sample, int64_t time);
/* The tables (struct dt_ets_table), the largest first, to be freed. */
GPtrArray *dt_ets_tables_by_memory(const struct dt_ets_tables *tables);
