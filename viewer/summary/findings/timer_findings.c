/* Processes that timers wake very often: all those with the same initial call, or single ones. */
#include "shared/amounts.h"
#include "summary/findings/rules.h"

/* A process is preempted after this many reductions. It looks as if something had woken it. */
enum { REDUCTIONS_PER_TURN = 4000 };

/* How often the processes of a node can have been preempted while they were traced; -1 if the
   counter does not say. */
static int64_t preemptions_of(const struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_named *reductions = dt_names_find(&summary->counters, node, "reductions");
    double traced = (double)dt_recorded(summary) / (double)dt_summary_ns(summary);

    if (!reductions)
        return -1;
    return (int64_t)(traced * (double)(reductions->max - reductions->min) / REDUCTIONS_PER_TURN);
}

/* Without deliveries, other nodes may have sent the messages, unless none is connected; and where
   events were lost, or where processes wait for schedulers, waits may have ended otherwise. */
static bool is_covered(const struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_named *others = dt_names_find(&summary->counters, node, "connected_nodes");

    if (node->has_receipts)
        return true;
    return dt_is_recorded(node->recorded, DT_RECORDED_SENDS) && others && others->max == 0 &&
           preemptions_of(summary, node) >= 0 && !summary->lost_rows &&
           !dt_has_busy_schedulers(summary, node);
}

/* The messages of timers, and how often it ran without a message, except after preemptions. */
static double wakes_per_s(const struct dt_summary *summary, const struct dt_actor *actor) {
    const uint64_t *wakes = actor->activity->wakes;

    if (!wakes[DT_WAKE_TIMER] && !wakes[DT_WAKE_UNEXPLAINED])
        return 0;
    if (!actor->node || !is_covered(summary, actor->node))
        return 0;
    if (actor->node->has_receipts)
        return dt_per_second(summary, wakes[DT_WAKE_TIMER]);
    uint64_t preempted = (uint64_t)preemptions_of(summary, actor->node);
    return dt_per_second(summary, wakes[DT_WAKE_TIMER] + wakes[DT_WAKE_UNEXPLAINED] -
                                      MIN(preempted, wakes[DT_WAKE_UNEXPLAINED]));
}

static void add(struct dt_summary *summary, struct dt_actor *actor, const char *who, double per_s,
                enum dt_severity severity) {
    if (actor->node->has_receipts)
        dt_find(summary, DT_RULE_timers, severity, actor,
                "%s: timers sent %.0f messages per second", who, per_s);
    else
        dt_find(summary, DT_RULE_timers, DT_LOW, actor,
                "%s: %.0f times per second, a wait ended without a recorded message: timers, "
                "signals or a NIF (inferred)",
                who, per_s);
}

/* Of the processes of a kind, the one whose wakes are closest to the average; NULL: none. */
static struct dt_actor *example_of(const GPtrArray *actors, struct dt_actor *kind) {
    int64_t average = dt_top_by_wakes(kind) / (int64_t)kind->activity->woken_processes;
    struct dt_actor *example = NULL;
    int64_t least = INT64_MAX;

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        if (actor->kind != DT_PROCESS || dt_is_own(actor) || dt_actor_kind(actor) != kind)
            continue;
        int64_t from_average = ABS(dt_top_by_wakes(actor) - average);
        if (from_average < least) {
            least = from_average;
            example = actor;
        }
    }
    return example;
}

/* The kinds with several processes and many wakes, the most first. */
static GPtrArray *woken_kinds(const struct dt_summary *summary) {
    GPtrArray *kinds = dt_actor_sums(&summary->actors);

    for (unsigned i = kinds->len; i-- > 0;) {
        const struct dt_actor *kind = g_ptr_array_index(kinds, i);
        if (kind->activity->woken_processes < 2 ||
            wakes_per_s(summary, kind) < dt_limits.timers.of_kind)
            g_ptr_array_remove_index_fast(kinds, i);
    }
    dt_top_sort(kinds, dt_top_by_wakes);
    return kinds;
}

void dt_find_in_timers(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    uint64_t found = 0;

    if (!dt_is_long(summary, dt_limits.timers.recorded))
        return;
    g_autoptr(GPtrArray) kinds = woken_kinds(summary);
    for (unsigned i = 0; i < kinds->len && found < dt_limits.timers.per_rule; i++) {
        struct dt_actor *kind = g_ptr_array_index(kinds, i), *example = example_of(actors, kind);
        if (!example)
            continue;
        g_autofree char *name = dt_actor_show_where(example);
        g_autofree char *who =
            g_strdup_printf("%" PRIu64 " processes like %s", kind->activity->woken_processes, name);
        add(summary, example, who, wakes_per_s(summary, kind), DT_LOW);
        found++;
    }
    dt_top_sort(actors, dt_top_by_wakes);
    for (unsigned i = 0; i < actors->len && found < dt_limits.timers.per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        double per_s = wakes_per_s(summary, actor);
        if (per_s < dt_limits.timers.per_s || dt_is_own(actor) ||
            g_ptr_array_find(kinds, dt_actor_kind(actor), NULL))
            continue;
        g_autofree char *name = dt_actor_show_where(actor);
        add(summary, actor, name, per_s, DT_MEDIUM);
        found++;
    }
}
