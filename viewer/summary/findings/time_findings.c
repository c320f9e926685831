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
    bool is_of_cpu; /* the time includes that in which a CPU quota stopped the node */
};

static int64_t on_cpu(const struct dt_actor *actor) {
    return actor->activity->run + actor->activity->collecting;
}

static void spent(struct dt_summary *summary, const struct share_rule *rule) {
    int64_t recorded = dt_recorded(summary);

    if (!dt_is_long(summary, rule->recorded))
        return;
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, rule->time_of);
    for (unsigned i = 0; i < actors->len && i < rule->per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        int64_t time = rule->time_of(actor);

        if (!dt_is_share(time, recorded, rule->share))
            return;
        if ((rule->is_of_cpu && dt_part_not_stopped(summary, actor->node) < 1) ||
            dt_is_formatting(summary, actor))
            continue;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, rule->rule, DT_MEDIUM, actor, "%s %s for %s of %s", name, rule->did,
                dt_show_share((double)time / (double)recorded).text, dt_recorded_words(summary));
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

/* Which processes used most of the schedulers' time, as part of a sentence; "" if none used much.
 */
static char *who_ran(const struct dt_summary *summary, const struct dt_seen_node *node,
                     const char *before, const char *time) {
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
    if (!first || !dt_is_share(first->ns, all, dt_limits.busy_schedulers.named))
        return g_strdup("");
    g_autofree char *several = g_strdup_printf("%u processes like ", first->count);
    g_autofree char *most = dt_actor_show_pid(first->most);
    return g_strdup_printf("%s%s of %s by %s%s", before,
                           dt_show_share((double)first->ns / (double)all).text, time,
                           first->count > 1 ? several : "", most);
}

/* The schedulers that have run; the node's others are offline or idle. */
static unsigned schedulers_of(const struct dt_summary *summary, const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) rows = dt_rows_counters(summary);
    unsigned schedulers = 0;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        schedulers += row->node == node && row->max > 0 &&
                      g_str_has_prefix(row->name, "scheduler_utilization_");
    }
    return schedulers;
}

/* The waits that messages and yields show, as text; NULL if they are too short. */
static char *show_waits(const struct dt_summary *summary, const struct dt_seen_node *node) {
    int64_t waited = sum_of(summary, node, DT_LOAD_RUNNABLE);
    int64_t all = waited + sum_of(summary, node, DT_LOAD_RUN);
    const struct dt_listed *wait = longest_wait(summary, node);

    if (waited < dt_limits.busy_schedulers.waited ||
        !dt_is_share(waited, all, dt_limits.busy_schedulers.share))
        return NULL;
    g_autofree char *waiter = wait ? dt_actor_show_pid(wait->actor) : NULL;
    return g_strdup_printf(
        "processes that ran or could run waited for %s of that time%s%s%s%s (inferred)",
        dt_show_share((double)waited / (double)all).text, wait ? ", " : "", wait ? waiter : "",
        wait ? " for up to " : "", wait ? dt_show_ns(wait->ns).text : "");
}

/* Whether nearly all of its samples show it running or runnable. */
static bool is_computing(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_activity *activity = actor->activity;
    const struct dt_sampled *of = activity->sampled;
    int64_t recorded = dt_recorded(summary);

    return of && of->last - of->first >= dt_limits.busy_schedulers.sampled &&
           dt_is_share(of->last - of->first, recorded, dt_limits.busy_schedulers.covered) &&
           dt_is_share((int64_t)of->active, (int64_t)of->count,
                       dt_limits.busy_schedulers.samples) &&
           dt_is_share(on_cpu(actor), recorded, dt_limits.busy_schedulers.runs) &&
           !activity->dirty_cpu && !activity->dirty_io && !dt_is_own(actor);
}

/* That more processes than schedulers compute, as text; NULL if not. The events of a process that
   the VM preempts do not show that it waits for a scheduler. */
static char *show_computing(const struct dt_summary *summary, const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    unsigned schedulers = schedulers_of(summary, node), computing = 0;

    for (unsigned i = 0; i < actors->len; i++) {
        const struct dt_actor *actor = g_ptr_array_index(actors, i);
        computing += actor->node == node && is_computing(summary, actor);
    }
    if (computing <= schedulers)
        return NULL;
    return g_strdup_printf("%u processes ran or could run in at least %" PRId64
                           " %% of their samples, on %u scheduler%s",
                           computing, dt_limits.busy_schedulers.samples, schedulers,
                           schedulers == 1 ? "" : "s");
}

/* The run queue, as text; NULL if it is too short. It includes processes that are displaced by
   those that take the samples. */
static char *show_run_queue(const struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_named *row = dt_names_find(&summary->counters, node, "run_queue");
    int64_t least = schedulers_of(summary, node) + (int64_t)dt_limits.busy_schedulers.queued;
    int64_t fewest = INT64_MAX;
    unsigned long_ones = 0;

    if (!row || row->series->times[row->series->points - 1] - row->series->times[0] <
                    dt_limits.busy_schedulers.sampled)
        return NULL;
    for (unsigned i = 0; i < row->series->points; i++) {
        int64_t queued = row->series->values[i];

        if (queued < least)
            continue;
        fewest = MIN(fewest, queued);
        long_ones++;
    }
    if (!dt_is_share(long_ones, row->series->points, dt_limits.busy_schedulers.samples))
        return NULL;
    return g_strdup_printf(
        "%" PRId64 " or more processes and ports were in the run queues in at least %" PRId64
        " %% of the samples",
        fewest, dt_limits.busy_schedulers.samples);
}

static bool waits_of(struct dt_summary *summary, const struct dt_seen_node *node) {
    if (!dt_has_busy_schedulers(summary, node))
        return false;
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);
    g_autofree char *waits = show_waits(summary, node);
    if (!waits)
        waits = show_computing(summary, node);
    if (!waits)
        waits = show_run_queue(summary, node);
    if (!waits)
        return false;
    g_autofree char *who = who_ran(summary, node, ", ", "it");
    dt_find(summary, DT_RULE_busy_schedulers, DT_MEDIUM, NULL,
            "the schedulers%s%s are %" PRId64 " %% busy on average%s: %s",
            are_several ? " of " : "", are_several ? node->name : "", utilization_of(summary, node),
            who, waits);
    return true;
}

/* -- CPU quota -------------------------------------------------------------------------- */

/* How long the quota stopped the schedulers on average, and the time between the samples; false if
   that is too short, or if it is unknown. The counter is the sum of all CPUs. */
static bool stopped(const struct dt_summary *summary, const struct dt_seen_node *node, int64_t *ns,
                    int64_t *sampled) {
    const struct dt_named *row = dt_names_find(&summary->counters, node, "cpu_throttled");
    unsigned schedulers = row ? schedulers_of(summary, node) : 0;

    if (!schedulers)
        return false;
    const struct dt_series *series = row->series;
    unsigned last = series->points - 1;
    *sampled = series->times[last] - series->times[0];
    int64_t us = MAX(series->values[last] - series->values[0], 0) / schedulers;
    *ns = MIN(us, *sampled / DT_NS_PER_US) * DT_NS_PER_US;
    return *sampled >= dt_limits.cpu_quota.sampled &&
           dt_is_share(*ns, *sampled, dt_limits.cpu_quota.share);
}

double dt_part_not_stopped(const struct dt_summary *summary, const struct dt_seen_node *node) {
    int64_t ns, sampled;

    return stopped(summary, node, &ns, &sampled) ? 1 - (double)ns / (double)sampled : 1;
}

/* "the CPU quota of the node's cgroup (0.50 CPUs)" */
static char *show_quota(const struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_named *quota = dt_names_find(&summary->counters, node, "cpu_quota");
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text, "the CPU quota of %s's cgroup",
                    are_several ? dt_seen_node_name(node) : "the node");
    if (quota)
        g_string_append_printf(text, " (%.2f CPUs)", (double)quota->last / DT_PER_MILLE);
    return g_strdup(text->str);
}

static bool quota(struct dt_summary *summary, const struct dt_seen_node *node) {
    int64_t ns, sampled;

    if (!stopped(summary, node, &ns, &sampled))
        return false;
    g_autofree char *shown = show_quota(summary, node);
    g_autofree char *who = who_ran(summary, node, "; ", "its work");
    dt_find(summary, DT_RULE_cpu_quota,
            dt_is_share(ns, sampled, dt_limits.cpu_quota.very_large) ? DT_HIGH : DT_MEDIUM, NULL,
            "%s stopped it for %s of %s (inferred)%s", shown,
            dt_show_share((double)ns / (double)sampled).text, dt_show_ns(sampled).text, who);
    return true;
}

void dt_find_in_time(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    spent(summary, &(struct share_rule){
                       DT_RULE_busy_process, on_cpu, "ran", dt_limits.busy_process.share,
                       dt_limits.busy_process.recorded, dt_limits.busy_process.per_rule, true});
    spent(summary, &(struct share_rule){DT_RULE_file_io, dt_top_by_dirty_io, "waited for files",
                                        dt_limits.file_io.share, dt_limits.file_io.recorded,
                                        dt_limits.file_io.per_rule, false});
    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);

        if (!quota(summary, node) && !waits_of(summary, node))
            longest(summary, node);
    }
}
