#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): strverscmp requires it */
#include "summary/sorted_rows.h"

#include <string.h>

#include "shared/arrays.h"
#include "shared/texts.h"

static int by_total(const void *a, const void *b) {
    const struct dt_named *x = *(struct dt_named *const *)a, *y = *(struct dt_named *const *)b;
    int by = dt_compare(y->total, x->total);

    by = by ? by : dt_compare((int64_t)y->count, (int64_t)x->count);
    return by ? by : strcmp(x->name, y->name);
}

bool dt_is_of_scheduler(const char *counter) {
    const char *number = strrchr(counter, '_');

    return number && number[1] && !number[1 + strspn(number + 1, "0123456789")];
}

/* The counters of single schedulers come last, run_queue_2 before run_queue_10. */
static int by_name(const void *a, const void *b) {
    const struct dt_named *x = *(struct dt_named *const *)a, *y = *(struct dt_named *const *)b;
    int by = dt_is_of_scheduler(x->name) - dt_is_of_scheduler(y->name);

    by = by ? by : strverscmp(x->name, y->name);
    return by || !x->node || !y->node ? by : dt_compare(x->node->number, y->node->number);
}

/* Rows with timeouts come first, because a timeout adds to no quantile. */
static int slowest(const void *a, const void *b) {
    const struct dt_pair *x = *(struct dt_pair *const *)a, *y = *(struct dt_pair *const *)b;
    int by = dt_compare((int64_t)y->timeouts, (int64_t)x->timeouts);

    return by ? by : dt_compare(dt_quantile_high(&y->took), dt_quantile_high(&x->took));
}

GPtrArray *dt_rows_server_calls(const struct dt_summary *summary) {
    GPtrArray *rows = dt_pairs_by_count(&summary->server_calls);

    g_ptr_array_sort(rows, slowest);
    return rows;
}

#define ROWS(table, rows)                                                                          \
    GPtrArray *dt_rows_##table(const struct dt_summary *summary) {                                 \
        return rows;                                                                               \
    }
ROWS(nodes, dt_seen_nodes_known(&summary->actors.nodes))
ROWS(lost, dt_pointers(summary->lost))
ROWS(findings, dt_pointers(summary->findings))
ROWS(processes, dt_top_copy(&summary->processes))
ROWS(ports, dt_top_copy(&summary->ports))
ROWS(totals, dt_totals_sorted(&summary->totals))
ROWS(calls, dt_names_sorted(&summary->calls, by_total))
ROWS(spans, dt_names_sorted(&summary->spans, by_total))
ROWS(telemetry, dt_names_sorted(&summary->telemetry, by_total))
ROWS(counters, dt_names_sorted(&summary->counters, by_name))
ROWS(talks, dt_pairs_by_count(&summary->talks))
ROWS(requests, dt_requests_by_begin(&summary->requests))
ROWS(dead, dt_pairs_by_count(&summary->dead))
ROWS(crashes, dt_pointers(summary->crashes.rows))
ROWS(waits, dt_pointers(summary->waits.rows))
ROWS(collections, dt_pointers(summary->collections.rows))
ROWS(log, dt_pointers(summary->log.rows))
ROWS(others, dt_pointers(summary->others.rows))
