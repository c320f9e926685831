/* Storms of short-lived processes and connections. */
#include <string.h>

#include "shared/arrays.h"
#include "shared/amounts.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"

static int worst_first(const void *a, const void *b) {
    const struct dt_lives_row *x = *(struct dt_lives_row *const *)a;
    const struct dt_lives_row *y = *(struct dt_lives_row *const *)b;
    int by = dt_compare((int64_t)y->short_ones, (int64_t)x->short_ones);

    by = by ? by : dt_compare((int64_t)y->started, (int64_t)x->started);
    by = by ? by : strcmp(x->what, y->what);
    return by ? by : dt_compare((int64_t)x->example->number, (int64_t)y->example->number);
}

static const char *what(const struct dt_lives_row *row) {
    return *row->what ? row->what : "processes";
}

static bool are_short(const struct dt_summary *summary, const struct dt_lives_row *row,
                      double per_s, int64_t share) {
    return dt_per_second(summary, row->short_ones) >= per_s &&
           dt_is_share((int64_t)row->short_ones, (int64_t)row->started, share);
}

static bool are_short_connections(const struct dt_summary *summary,
                                  const struct dt_lives_row *row) {
    return row->kind == DT_PORT && strcmp(row->what, "tcp_inet") == 0 &&
           dt_is_long(summary, dt_limits.short_connections.recorded) &&
           are_short(summary, row, dt_limits.short_connections.per_s,
                     dt_limits.short_connections.share);
}

static bool are_short_lives(const struct dt_summary *summary, const struct dt_lives_row *row) {
    return row->kind == DT_PROCESS && !dt_is_restarted(row) &&
           dt_is_long(summary, dt_limits.short_lives.recorded) &&
           are_short(summary, row, dt_limits.short_lives.per_s, dt_limits.short_lives.share);
}

/* Opened by a process, or accepted by a listener, whose name contains its address. */
static void short_connections(struct dt_summary *summary, const struct dt_lives_row *row) {
    g_autofree char *parent = dt_actor_show_where(row->parent);
    bool is_accepted = row->parent && row->parent->kind == DT_PORT;
    bool is_storm = dt_per_second(summary, row->short_ones) >= dt_limits.short_connections.storm;

    dt_find(summary, DT_RULE_short_connections, is_storm ? DT_MEDIUM : DT_LOW, row->parent,
            "%" PRIu64 " of %" PRIu64 " connections lived at most %s, %.0f per second: %s by %s",
            row->short_ones, row->started, dt_show_ns(dt_limits.short_connections.life).text,
            dt_per_second(summary, row->short_ones), is_accepted ? "accepted" : "opened", parent);
}

static void short_lives(struct dt_summary *summary, const struct dt_lives_row *row) {
    g_autofree char *parent = dt_actor_show_where(row->parent);

    dt_find(summary, DT_RULE_short_lives, DT_LOW, row->parent,
            "%s: %" PRIu64 " of %" PRIu64
            " processes lived at most %s, %.0f per second: started by %s",
            what(row), row->short_ones, row->started, dt_show_ns(dt_limits.short_lives.life).text,
            dt_per_second(summary, row->short_ones), parent);
}

void dt_find_in_lives(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->lives.rows);
    unsigned connections = 0, lives = 0;

    g_ptr_array_sort(rows, worst_first);
    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_lives_row *row = g_ptr_array_index(rows, i);

        if (are_short_connections(summary, row) &&
            connections++ < dt_limits.short_connections.per_rule)
            short_connections(summary, row);
        if (are_short_lives(summary, row) && lives++ < dt_limits.short_lives.per_rule)
            short_lives(summary, row);
    }
}
