/* Time on schedulers, and waits for them. */
#include "shared/show.h"
#include "summary/findings/rules.h"
#include "summary/rows.h"

static void runs(struct dt_summary *summary) {
    int64_t recorded = dt_recorded(summary), found = 0;
    if (recorded < dt_limits.busy_process.recorded)
        return;
    for (guint i = 0; i < summary->processes.whos->len; i++) {
        struct dt_who *who = g_ptr_array_index(summary->processes.whos, i);
        int64_t ran = who->run + who->collecting;
        if (!dt_is_share(ran, recorded, dt_limits.busy_process.share))
            continue;
        if (found++ >= dt_limits.busy_process.per_rule)
            return;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        dt_find(summary, DT_RULE_busy_process, DT_MEDIUM, who, "%s ran for %s of the recording",
                name, dt_show_share((double)ran / (double)recorded).text);
    }
}

static int64_t sum_of(const struct dt_summary *summary, const struct dt_seen_node *node,
                      enum dt_load_number number) {
    const int64_t *load = dt_load_of(&summary->load, node, number);
    int64_t sum = 0;
    for (unsigned n = 0; n < DT_STEPS; n++)
        sum += load[n];
    return sum;
}

static void longest(struct dt_summary *summary, bool are_busy) {
    if (!summary->waits.rows->len)
        return;
    const struct dt_listed *row = &g_array_index(summary->waits.rows, struct dt_listed, 0);
    if (row->ns < dt_limits.long_wait.wait)
        return;
    g_autofree char *name = dt_who_show_where(&summary->whos, row->who);
    bool is_bad = are_busy && row->ns >= dt_limits.long_wait.very_long;
    dt_find(summary, DT_RULE_long_wait, is_bad ? DT_MEDIUM : DT_LOW, row->who,
            "%s waited %s for a scheduler (inferred), the longest such wait", name,
            dt_show_ns(row->ns).text);
}

static void shares(struct dt_summary *summary, int64_t utilization) {
    int64_t ran = 0, waited = 0;
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);
    for (guint i = 0; i < nodes->len; i++) {
        ran += sum_of(summary, g_ptr_array_index(nodes, i), DT_LOAD_RUN);
        waited += sum_of(summary, g_ptr_array_index(nodes, i), DT_LOAD_RUNNABLE);
    }
    if (waited < dt_limits.busy_schedulers.waited ||
        !dt_is_share(waited, ran + waited, dt_limits.busy_schedulers.share))
        return;
    dt_find(summary, DT_RULE_busy_schedulers, DT_MEDIUM, NULL,
            "the schedulers are busy, %" G_GINT64_FORMAT
            " %% on average: processes that could run spent %s of that time waiting for one "
            "(inferred)",
            utilization, dt_show_share((double)waited / (double)(ran + waited)).text);
}

void dt_find_in_time(struct dt_summary *summary) {
    int64_t utilization = dt_utilization(summary);
    bool are_busy = utilization >= dt_limits.busy_schedulers.utilization;
    runs(summary);
    longest(summary, are_busy);
    if (are_busy)
        shares(summary, utilization);
}
