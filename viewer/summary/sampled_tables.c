#include "summary/sampled_tables.h"

#include <string.h>

#include "shared/arrays.h"
#include "shared/texts.h"

/* Tables, at most. Further ones are ignored. */
enum { MOST = 1024 };

static unsigned table_hash(const void *of) {
    const struct dt_ets_table *table = of;

    return g_direct_hash(table->node) + g_str_hash(table->id);
}

static gboolean table_equal(const void *a, const void *b) {
    const struct dt_ets_table *x = a, *y = b;

    return x->node == y->node && strcmp(x->id, y->id) == 0;
}

static void table_free(void *data) {
    struct dt_ets_table *table = data;

    g_free(table->id);
    g_free(table->name);
    dt_actor_drop(table->owner);
    g_free(table);
}

void dt_ets_tables_init(struct dt_ets_tables *tables) {
    tables->rows = g_hash_table_new_full(table_hash, table_equal, NULL, table_free);
}

void dt_ets_tables_free(struct dt_ets_tables *tables) {
    g_hash_table_destroy(tables->rows);
}

/* NULL: there are too many. */
static struct dt_ets_table *table_of(struct dt_ets_tables *tables, struct dt_seen_node *node,
                                     const char *id) {
    struct dt_ets_table *table =
        g_hash_table_lookup(tables->rows, &(struct dt_ets_table){.node = node, .id = (char *)id});

    if (table || g_hash_table_size(tables->rows) >= MOST)
        return table;
    table = g_new0(struct dt_ets_table, 1);
    table->node = node;
    table->id = g_strdup(id);
    g_hash_table_add(tables->rows, table);
    return table;
}

void dt_ets_tables_add(struct dt_ets_tables *tables, struct dt_actor *owner,
                       const struct dt_table_sample *sample, int64_t time) {
    struct dt_ets_table *table = table_of(tables, owner->node, sample->table);

    if (!table)
        return;
    dt_set(&table->name, sample->name);
    dt_actor_keep(owner);
    dt_actor_drop(table->owner);
    table->owner = owner;
    table->objects = sample->objects;
    dt_series_add(&table->memory, time, (int64_t)MIN(sample->memory, (uint64_t)INT64_MAX));
}

static int largest_first(const void *a, const void *b) {
    const struct dt_ets_table *x = *(struct dt_ets_table *const *)a;
    const struct dt_ets_table *y = *(struct dt_ets_table *const *)b;
    int by = dt_compare(dt_series_last(&y->memory), dt_series_last(&x->memory));

    return by ? by : strcmp(x->id, y->id);
}

GPtrArray *dt_ets_tables_by_memory(const struct dt_ets_tables *tables) {
    GPtrArray *rows = dt_rows_of(tables->rows);

    g_ptr_array_sort(rows, largest_first);
    return rows;
}
