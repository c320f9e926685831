#include "summary/server_totals.h"

#include "shared/arrays.h"
#include "shared/texts.h"

static void served_free(void *data) {
    struct dt_served *served = data;

    dt_quantiles_clear(&served->took);
    dt_quantiles_clear(&served->queued);
    dt_quantiles_clear(&served->worked);
    g_free(served);
}

GHashTable *dt_served_by_server(const struct dt_summary *summary) {
    GHashTable *servers = g_hash_table_new_full(NULL, NULL, NULL, served_free);
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->server_calls);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        struct dt_served *served = g_hash_table_lookup(servers, row->to);

        if (!served) {
            served = g_new0(struct dt_served, 1);
            served->server = row->to;
            g_hash_table_insert(servers, row->to, served);
        }
        served->count += row->count;
        served->timeouts += row->timeouts;
        served->downs += row->downs;
        dt_quantiles_merge(&served->took, &row->took);
        dt_quantiles_merge(&served->queued, &row->queued);
        dt_quantiles_merge(&served->worked, &row->worked);
    }
    return servers;
}

static int slowest(const void *a, const void *b) {
    const struct dt_served *x = *(struct dt_served *const *)a, *y = *(struct dt_served *const *)b;
    int by = dt_compare(dt_quantile_high(&y->took), dt_quantile_high(&x->took));

    return by ? by : dt_compare((int64_t)x->server->number, (int64_t)y->server->number);
}

GPtrArray *dt_served_slowest_first(GHashTable *servers) {
    GPtrArray *rows = dt_rows_of(servers);

    g_ptr_array_sort(rows, slowest);
    return rows;
}
