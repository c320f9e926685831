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
        if (dt_is_formatting(summary, actor))
            continue;
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
static const struct dt_listed *longest_wait(const struct dt_summary *summary,
                                            const struct dt_seen_node *node) {
    for (unsigned i = 0; i < summary->waits.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->waits.rows, struct dt_listed, i);

        if (row->node == node && (!row->actor || !row->actor->activity->sampled ||
                                  !row->actor->activity->sampled->was_suspended))
            return row;
    }
    return NULL;
}

static void longest(struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_listed *row = longest_wait(summary, node);

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

/* -- Busy schedulers -------------------------------------------------------------------- */

/* Processes with the same initial call. */
struct kind {
    struct dt_actor *most; /* the one that ran longest */
    unsigned count;        /* of those that ran for a hundredth of the recording */
    int64_t ns;
};

/* Adds the time of a process to that of its kind, and returns it. */
static int64_t add_to_kind(GHashTable *kinds, struct dt_actor *actor, int64_t recorded) {
    struct kind *kind = g_hash_table_lookup(kinds, dt_actor_kind(actor));
    int64_t ns = on_cpu(actor);

    if (!kind) {
        kind = g_new0(struct kind, 1);
        g_hash_table_insert(kinds, dt_actor_kind(actor), kind);
    }
    if (!kind->most || ns > on_cpu(kind->most))
        kind->most = actor;
    kind->count += dt_is_share(ns, recorded, 1);
    kind->ns += ns;
    return ns;
}

/* Which processes use most of the schedulers' time, as part of a sentence; empty if none do. */
static char *who_ran(const struct dt_summary *summary, const struct dt_seen_node *node) {
    g_autoptr(GHashTable) kinds = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    const struct kind *first = NULL;
    GHashTableIter iter;
    gpointer value;
    int64_t all = 0;

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        if (actor->node == node)
            all += add_to_kind(kinds, actor, dt_recorded(summary));
    }
    g_hash_table_iter_init(&iter, kinds);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct kind *kind = value;
        if (!first || kind->ns > first->ns)
            first = kind;
    }
    if (!first || !dt_is_share(first->ns, all, dt_limits.busy_schedulers.mostly))
        return g_strdup("");
    g_autofree char *several = g_strdup_printf("%u processes like ", first->count);
    g_autofree char *most = dt_actor_show_pid(first->most);
    return g_strdup_printf(", %s of it by %s%s",
                           dt_show_share((double)first->ns / (double)all).text,
                           first->count > 1 ? several : "", most);
}

static bool waits_of(struct dt_summary *summary, const struct dt_seen_node *node) {
    int64_t waited = sum_of(summary, node, DT_LOAD_RUNNABLE);
    int64_t all = waited + sum_of(summary, node, DT_LOAD_RUN);
    const struct dt_listed *wait = longest_wait(summary, node);

    if (waited < dt_limits.busy_schedulers.waited ||
        !dt_is_share(waited, all, dt_limits.busy_schedulers.share) ||
        !dt_has_busy_schedulers(summary, node))
        return false;
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);
    g_autofree char *who = who_ran(summary, node);
    g_autofree char *waiter = wait ? dt_actor_show_pid(wait->actor) : NULL;
    dt_find(summary, DT_RULE_busy_schedulers, DT_MEDIUM, NULL,
            "the schedulers%s%s are %" PRId64
            " %% busy on average%s: processes that ran or could run waited for %s of that time"
            "%s%s%s%s (inferred)",
            are_several ? " of " : "", are_several ? node->name : "", utilization_of(summary, node),
            who, dt_show_share((double)waited / (double)all).text, wait ? ", " : "",
            wait ? waiter : "", wait ? " for up to " : "", wait ? dt_show_ns(wait->ns).text : "");
    return true;
}

void dt_find_in_time(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    spent(summary,
          &(struct share_rule){DT_RULE_busy_process, on_cpu, "ran", dt_limits.busy_process.share,
                               dt_limits.busy_process.recorded, dt_limits.busy_process.per_rule});
    spent(summary, &(struct share_rule){DT_RULE_file_io, dt_top_by_dirty_io, "waited for files",
                                        dt_limits.file_io.share, dt_limits.file_io.recorded,
                                        dt_limits.file_io.per_rule});
    for (unsigned i = 0; i < nodes->len; i++)
        if (!waits_of(summary, g_ptr_array_index(nodes, i)))
            longest(summary, g_ptr_array_index(nodes, i));
}
