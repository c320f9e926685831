#include "summary/totals.h"

#include <string.h>

#include "shared/arrays.h"
#include "shared/texts.h"

/* Rows, at most. Further names are summed in the row "others". */
enum { MOST = 4096 };

const struct dt_total_kind dt_total_kinds[DT_TOTALS] = {
    [DT_TOTAL_RUN] = {"run", "_ns", DT_RECORDED_SCHEDULING},
    [DT_TOTAL_RUNS] = {"runs", "", DT_RECORDED_SCHEDULING},
    [DT_TOTAL_COLLECTING] = {"collecting", "_ns", DT_RECORDED_COLLECTIONS},
    [DT_TOTAL_COLLECTIONS] = {"collections", "", DT_RECORDED_COLLECTIONS},
    [DT_TOTAL_SENT] = {"sent", "", DT_RECORDED_SENDS},
    [DT_TOTAL_RECEIVED] = {"received", "", DT_RECORDED_DELIVERIES},
    [DT_TOTAL_STARTED] = {"started", "", DT_RECORDED_SPAWNS},
    [DT_TOTAL_CRASHED] = {"crashed", "", DT_RECORDED_EXITS},
};

static unsigned row_hash(const void *of) {
    const struct dt_total *row = of;

    return g_direct_hash(row->node) + g_str_hash(row->name);
}

static gboolean row_equal(const void *a, const void *b) {
    const struct dt_total *x = a, *y = b;

    return x->node == y->node && strcmp(x->name, y->name) == 0;
}

static void row_free(void *data) {
    struct dt_total *row = data;

    g_free(row->name);
    g_free(row);
}

void dt_totals_init(struct dt_total_table *table) {
    table->rows = g_hash_table_new_full(row_hash, row_equal, NULL, row_free);
}

void dt_totals_free(struct dt_total_table *table) {
    g_hash_table_destroy(table->rows);
}

static struct dt_total *new_row(struct dt_total_table *table, struct dt_seen_node *node,
                                const char *name) {
    bool is_last = g_hash_table_size(table->rows) + 1 >= MOST;
    struct dt_total *row = g_new0(struct dt_total, 1);

    row->node = is_last ? NULL : node;
    row->name = g_strdup(is_last ? "others" : name);
    g_hash_table_add(table->rows, row);
    if (is_last)
        table->others = row;
    return row;
}

static struct dt_total *row_of(struct dt_total_table *table, struct dt_actor *actor) {
    struct dt_activity *activity = actor->activity;

    if (activity->total)
        return activity->total;
    const struct dt_process *p = actor->process;
    const char *name = *p->name ? p->name : p->initial;
    struct dt_total *row = g_hash_table_lookup(
        table->rows, &(struct dt_total){.node = actor->node, .name = (char *)name});
    if (!row)
        row = table->others ? table->others : new_row(table, actor->node, name);
    return activity->total = row;
}

static bool is_counted(const struct dt_actor *actor) {
    return actor && actor->kind == DT_PROCESS && actor->process && actor->node;
}

void dt_totals_add(struct dt_total_table *table, struct dt_actor *actor,
                   enum dt_total_number number, int64_t time, uint64_t amount) {
    if (is_counted(actor))
        dt_slices_add(&row_of(table, actor)->of[number], actor, time, amount);
}

static void sampled(struct dt_level *level, uint64_t value) {
    level->sum += MIN(value, UINT64_MAX - level->sum);
    level->max = MAX(level->max, value);
}

void dt_totals_sample(struct dt_total_table *table, struct dt_actor *actor, uint64_t memory,
                      uint64_t queue) {
    if (!is_counted(actor))
        return;
    struct dt_total *row = row_of(table, actor);
    row->samples++;
    sampled(&row->memory, memory);
    sampled(&row->queue, queue);
}

void dt_totals_renamed(struct dt_actor *actor) {
    actor->activity->total = NULL;
}

static int by_run(const void *a, const void *b) {
    const struct dt_total *x = *(struct dt_total *const *)a, *y = *(struct dt_total *const *)b;
    int by = dt_compare((int64_t)y->of[DT_TOTAL_RUN].total, (int64_t)x->of[DT_TOTAL_RUN].total);

    by = by ? by : strcmp(x->name, y->name);
    return by || !x->node || !y->node ? by : dt_compare(x->node->number, y->node->number);
}

GPtrArray *dt_totals_sorted(const struct dt_total_table *table) {
    GPtrArray *rows = dt_rows_of(table->rows);

    g_ptr_array_sort(rows, by_run);
    return rows;
}
