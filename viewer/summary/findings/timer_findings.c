/* Processes that timers wake very often: all those with the same initial call, or single ones. */
#include "shared/amounts.h"
#include "shared/arrays.h"
#include "summary/findings/rules.h"

/* A process is preempted after so many reductions. It looks as if something had woken it. */
enum { REDUCTIONS_PER_TURN = 4000 };

/* Without deliveries, other nodes may have sent the messages, unless none is connected; and a
   process may have been preempted, unless it then runs on at once. */
static bool is_covered(const struct dt_summary *summary, const struct dt_seen_node *node) {
    const struct dt_named *others = dt_names_find(&summary->counters, node, "connected_nodes");

    return node->has_receipts || (dt_is_recorded(node->recorded, DT_RECORDED_SENDS) && others &&
                                  others->max == 0 && !dt_has_busy_schedulers(summary, node));
}

/* The messages of timers, and how often it ran without a message, except after a preemption. */
static uint64_t wakes_of(const struct dt_actor *actor) {
    const struct dt_activity *activity = actor->activity;
    uint64_t preempted =
        activity->sampled ? activity->sampled->reductions / REDUCTIONS_PER_TURN : 0;

    if (actor->node->has_receipts)
        return activity->wakes[DT_WAKE_TIMER];
    return activity->wakes[DT_WAKE_TIMER] + activity->wakes[DT_WAKE_UNEXPLAINED] -
           MIN(preempted, activity->wakes[DT_WAKE_UNEXPLAINED]);
}

static void add(struct dt_summary *summary, struct dt_actor *actor, const char *who,
                const char *them, uint64_t wakes) {
    if (actor->node->has_receipts)
        dt_find(summary, DT_RULE_timers, DT_MEDIUM, actor,
                "%s: timers sent %s %.0f messages per second", who, them,
                dt_per_second(summary, wakes));
    else
        dt_find(summary, DT_RULE_timers, DT_MEDIUM, actor,
                "%s: timers woke %s %.0f times per second (inferred)", who, them,
                dt_per_second(summary, wakes));
}

/* -- Processes of one kind --------------------------------------------------------------- */

/* Of the processes of a kind, the one whose wakes are closest to the average. */
static struct dt_actor *example_of(const GPtrArray *actors, struct dt_actor *kind,
                                   uint64_t average) {
    struct dt_actor *example = NULL;
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        if (actor->kind != DT_PROCESS || dt_is_own(actor) || dt_actor_kind(actor) != kind)
            continue;
        uint64_t wakes = wakes_of(actor);
        uint64_t from_average = wakes > average ? wakes - average : average - wakes;
        if (from_average < least) {
            least = from_average;
            example = actor;
        }
    }
    return example;
}

static bool add_kind(struct dt_summary *summary, const GPtrArray *actors, struct dt_actor *kind) {
    uint64_t wakes = wakes_of(kind), count = kind->activity->woken_processes;

    if (!kind->node || count < 2 || dt_per_second(summary, wakes) < dt_limits.timers.of_kind ||
        !is_covered(summary, kind->node))
        return false;
    struct dt_actor *example = example_of(actors, kind, wakes / count);
    if (!example)
        return false;
    g_autofree char *name = dt_actor_show_where(example);
    g_autofree char *who = g_strdup_printf("%" PRIu64 " processes like %s", count, name);
    add(summary, example, who, "them", wakes);
    return true;
}

/* The most wakes first. */
static int most_first(const void *a, const void *b) {
    const struct dt_actor *x = *(struct dt_actor *const *)a, *y = *(struct dt_actor *const *)b;
    uint64_t of_x = wakes_of(x), of_y = wakes_of(y);

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

/* The kinds that have findings. */
static GHashTable *add_kinds(struct dt_summary *summary, const GPtrArray *actors) {
    GHashTable *found = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) kinds = dt_actor_sums(&summary->actors);

    g_ptr_array_sort(kinds, most_first);
    for (unsigned i = 0; i < kinds->len && g_hash_table_size(found) < dt_limits.timers.per_rule;
         i++)
        if (add_kind(summary, actors, g_ptr_array_index(kinds, i)))
            g_hash_table_add(found, g_ptr_array_index(kinds, i));
    return found;
}

/* -- Single processes -------------------------------------------------------------------- */

static void add_single(struct dt_summary *summary, struct dt_actor *actor) {
    g_autofree char *name = dt_actor_show_where(actor);

    add(summary, actor, name, "it", wakes_of(actor));
}

void dt_find_in_timers(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);

    if (dt_recorded(summary) < DT_NS_PER_S)
        return;
    g_autoptr(GHashTable) kinds = add_kinds(summary, actors);
    uint64_t found = g_hash_table_size(kinds);
    g_ptr_array_sort(actors, most_first);
    for (unsigned i = 0; i < actors->len && found < dt_limits.timers.per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (dt_per_second(summary, wakes_of(actor)) < dt_limits.timers.per_s)
            return;
        if (dt_is_own(actor) || g_hash_table_contains(kinds, dt_actor_kind(actor)) ||
            !is_covered(summary, actor->node))
            continue;
        add_single(summary, actor);
        found++;
    }
}
