/* Time on schedulers, and waits for them and for files. */
#include "shared/amounts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* A rule about processes that spent a large share of the recording in one way. */
struct share_rule {
    enum dt_rule_number rule;
    int64_t (*time_of)(const struct dt_actor *actor);
    const char *did;
    int64_t share, recorded;
    uint64_t per_rule;
};

static int64_t on_cpu(const struct dt_actor *actor) {
    return actor->activity->run + actor->activity->collecting;
}

static void spent(struct dt_summary *summary, const struct share_rule *rule) {
    int64_t recorded = dt_recorded(summary);

    if (recorded < rule->recorded)
        return;
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    dt_top_sort(actors, rule->time_of);
    for (unsigned i = 0; i < actors->len && i < rule->per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        int64_t time = rule->time_of(actor);

        if (!dt_is_share(time, recorded, rule->share))
            return;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, rule->rule, DT_MEDIUM, actor, "%s %s for %s of the recording", name,
                rule->did, dt_show_share((double)time / (double)recorded).text);
    }
}

/* The normal schedulers' utilization on average, in percent; -1 without counters. */
static int64_t utilization_of(const struct dt_summary *summary, const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) rows = dt_rows_counters(summary);
    int64_t per_mille = 0, samples = 0;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (row->node != node || !g_str_has_prefix(row->name, "scheduler_utilization_"))
            continue;
        per_mille += row->total;
        samples += (int64_t)row->count;
    }
    return samples ? per_mille / samples / 10 : -1;
}

bool dt_has_busy_schedulers(const struct dt_summary *summary, const struct dt_seen_node *node) {
    return utilization_of(summary, node) >= dt_limits.busy_schedulers.utilization;
}

/* A suspended process does not wait for a scheduler. The rows are sorted, longest first. */
static const struct dt_listed *longest_wait(const struct dt_summary *summary) {
    for (unsigned i = 0; i < summary->waits.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->waits.rows, struct dt_listed, i);

        if (!row->actor || !row->actor->activity->sampled ||
            !row->actor->activity->sampled->was_suspended)
            return row;
    }
    return NULL;
}

static void longest(struct dt_summary *summary) {
    const struct dt_listed *row = longest_wait(summary);

    if (!row || row->ns < dt_limits.long_wait.wait)
        return;
    g_autofree char *name = dt_actor_show_where(row->actor);
    bool is_bad =
        row->ns >= dt_limits.long_wait.very_long && dt_has_busy_schedulers(summary, row->node);
    dt_find(summary, DT_RULE_long_wait, is_bad ? DT_MEDIUM : DT_LOW, row->actor,
            "%s waited %s for a scheduler (inferred), the longest such wait", name,
            dt_show_ns(row->ns).text);
}

static int64_t sum_of(const struct dt_summary *summary, const struct dt_seen_node *node,
                      enum dt_load_number number) {
    const int64_t *load = dt_load_of(&summary->load, node, number);
    int64_t sum = 0;
    for (unsigned n = 0; n < DT_STEPS; n++)
        sum += load[n];
    return sum;
}

static void waits_of(struct dt_summary *summary, const struct dt_seen_node *node) {
    int64_t waited = sum_of(summary, node, DT_LOAD_RUNNABLE);
    int64_t all = waited + sum_of(summary, node, DT_LOAD_RUN);

    if (waited < dt_limits.busy_schedulers.waited ||
        !dt_is_share(waited, all, dt_limits.busy_schedulers.share) ||
        !dt_has_busy_schedulers(summary, node))
        return;
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);
    dt_find(summary, DT_RULE_busy_schedulers, DT_MEDIUM, NULL,
            "the schedulers%s%s are %" PRId64
            " %% busy on average: processes that ran or could run waited for %s of that time "
            "(inferred)",
            are_several ? " of " : "", are_several ? node->name : "", utilization_of(summary, node),
            dt_show_share((double)waited / (double)all).text);
}

void dt_find_in_time(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    spent(summary,
          &(struct share_rule){DT_RULE_busy_process, on_cpu, "ran", dt_limits.busy_process.share,
                               dt_limits.busy_process.recorded, dt_limits.busy_process.per_rule});
    spent(summary, &(struct share_rule){DT_RULE_file_io, dt_top_by_dirty_io, "waited for files",
                                        dt_limits.file_io.share, dt_limits.file_io.recorded,
                                        dt_limits.file_io.per_rule});
    longest(summary);
    for (unsigned i = 0; i < nodes->len; i++)
        waits_of(summary, g_ptr_array_index(nodes, i));
}
