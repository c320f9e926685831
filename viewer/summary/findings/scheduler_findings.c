/* Schedulers that do not get to other work: exhausted dirty schedulers, native functions,
 * priorities. */
#include <string.h>

#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* -- Dirty schedulers ------------------------------------------------------------------- */

static int64_t dirty_cpu(const struct dt_actor *actor) {
    return actor->activity->dirty_cpu;
}

/* The dirty schedulers of a kind: the names of their counters, and the time of a process. */
static const struct pool {
    enum dt_scheduler_kind kind;
    const char *shown, *utilization, *queue;
    dt_criterion *time_of;
} pools[] = {
    {DT_SCHEDULER_DIRTY_IO, "I/O", "dirty_io_utilization_", "run_queue_dirty_io",
     dt_top_by_dirty_io},
    {DT_SCHEDULER_DIRTY_CPU, "CPU", "dirty_cpu_utilization_", "run_queue_dirty_cpu", dirty_cpu},
};

/* When all of them were busy, how many they are, and the most processes that waited. */
struct exhaustion {
    int64_t begin, end, waiting;
    unsigned schedulers;
};

static bool is_exhausted(const struct dt_summary *summary, const struct dt_seen_node *node,
                         const struct pool *pool, struct exhaustion *of) {
    g_autoptr(GPtrArray) rows = dt_rows_counters(summary);

    *of = (struct exhaustion){.begin = INT64_MIN, .end = INT64_MAX};
    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (row->node != node)
            continue;
        if (strcmp(row->name, pool->queue) == 0)
            of->waiting = row->max;
        if (!g_str_has_prefix(row->name, pool->utilization))
            continue;
        if (row->full_begin == DT_NO_VALUE)
            return false;
        of->begin = MAX(of->begin, row->full_begin);
        of->end = MIN(of->end, row->full_end);
        of->schedulers++;
    }
    return of->schedulers && of->waiting > 0 && of->end > of->begin &&
           of->end - of->begin >= dt_limits.exhausted_schedulers.busy;
}

/* By events or, if it has occupied its scheduler since before the recording, by samples. */
static int64_t occupied(const struct dt_actor *actor, const struct pool *pool) {
    const struct dt_activity *of = actor->activity;
    bool has_events = of->dirty_cpu || of->dirty_io;

    if (!has_events && of->sampled && of->sampled->native)
        return of->sampled->longest_running;
    return pool->time_of(actor);
}

static int longest_first(const void *a, const void *b, void *pool) {
    const struct dt_actor *x = *(struct dt_actor *const *)a, *y = *(struct dt_actor *const *)b;
    int by = dt_compare(occupied(y, pool), occupied(x, pool));

    return by ? by : dt_compare((int64_t)x->number, (int64_t)y->number);
}

/* The processes that occupied a scheduler of the pool for a large part of that time, the longest
   first; if there are none, because many took turns, those with the most time. */
static GPtrArray *holders_of(const struct dt_summary *summary, const struct dt_seen_node *node,
                             const struct pool *pool, int64_t ns, bool *take_turns) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    GPtrArray *holders = g_ptr_array_new();

    g_ptr_array_sort_with_data(actors, longest_first, (void *)pool);
    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        int64_t time = occupied(actor, pool);

        if (actor->node != node || !time)
            continue;
        bool holds = dt_is_share(time, ns, dt_limits.exhausted_schedulers.holds);
        if (!holders->len)
            *take_turns = !holds;
        if (*take_turns ? holders->len >= dt_limits.exhausted_schedulers.names : !holds)
            break;
        g_ptr_array_add(holders, actor);
    }
    return holders;
}

/* The function in which processes spent the most time on these schedulers; "" if it is unknown. */
static const char *function_of(struct dt_summary *summary, const struct dt_seen_node *node,
                               const struct pool *pool, const GPtrArray *holders) {
    struct dt_names *functions = &summary->dirty[pool->kind];
    const struct dt_named *most = NULL;

    for (unsigned i = 0; i < holders->len; i++) {
        const struct dt_actor *actor = g_ptr_array_index(holders, i);
        const struct dt_sampled *sampled = actor->activity->sampled;

        if (!pool->time_of(actor))
            dt_names_row(functions, actor->node, sampled->native)->total +=
                sampled->longest_running;
    }
    g_autoptr(GPtrArray) rows = dt_rows_of(functions->rows);
    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (row->node == node && (!most || row->total > most->total ||
                                  (row->total == most->total && strcmp(row->name, most->name) < 0)))
            most = row;
    }
    return most ? most->name : "";
}

static void put_holders(GString *text, const GPtrArray *holders, bool take_turns) {
    uint64_t names = MIN(holders->len, dt_limits.exhausted_schedulers.names);

    for (unsigned i = 0; i < names; i++) {
        g_autofree char *name = dt_actor_show_where(g_ptr_array_index(holders, i));

        g_string_append_printf(text, "%s%s", i ? ", " : take_turns ? ", most by " : ", by ", name);
    }
    if (holders->len > names)
        g_string_append_printf(text, " and %" PRIu64 " more", holders->len - names);
}

/* Processes that stay runnable. If the normal schedulers are busy, they may wait for these. */
static void put_waiting(GString *text, const struct dt_summary *summary,
                        const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    uint64_t n = 0;

    for (unsigned i = 0; i < actors->len && !dt_has_busy_schedulers(summary, node); i++) {
        const struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (actor->node != node || !actor->activity->sampled ||
            !actor->activity->sampled->longest_runnable ||
            n++ >= dt_limits.exhausted_schedulers.names)
            continue;
        g_autofree char *name = dt_actor_show_where(actor);
        g_string_append_printf(text, "%s%s", n == 1 ? ", among them " : ", ", name);
    }
}

static void exhausted(struct dt_summary *summary, const struct dt_seen_node *node,
                      const struct pool *pool) {
    struct exhaustion of;

    if (!is_exhausted(summary, node, pool, &of))
        return;
    int64_t ns = of.end - of.begin;
    bool take_turns = false;
    g_autoptr(GPtrArray) holders = holders_of(summary, node, pool, ns, &take_turns);
    const char *function = function_of(summary, node, pool, holders);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text,
                    "all %u dirty %s schedulers were busy for %s, and up to %" PRId64
                    " process%s waited for one",
                    of.schedulers, pool->shown, dt_show_ns(ns).text, of.waiting,
                    of.waiting == 1 ? "" : "es");
    put_waiting(text, summary, node);
    if (*function)
        g_string_append_printf(text, "; they were in %s", function);
    put_holders(text, holders, take_turns);
    dt_find(summary, DT_RULE_exhausted_schedulers, DT_HIGH,
            holders->len ? g_ptr_array_index(holders, 0) : NULL, "%s", text->str);
}

/* -- Normal schedulers ------------------------------------------------------------------ */

/* The runs of a process that are longer than the limit. */
struct runs {
    struct dt_actor *actor;
    int64_t longest, sum;
    uint64_t count; /* 0: by samples */
    const char *in; /* where the longest began */
};

/* The VM's own reports are more exact. */
static bool is_reported(const struct dt_summary *summary, const struct dt_actor *actor) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->reports.rows);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (row->from == actor && strcmp(row->text, dt_probe_names[DT_vm_long_schedule]) == 0)
            return true;
    }
    return false;
}

/* The longest time for which the host is known to have delayed a thread. */
static int64_t delay_by_host(const struct dt_summary *summary) {
    int64_t longest = 0;

    for (unsigned i = 0; i < summary->collections.rows->len; i++) {
        const struct dt_listed *row =
            &g_array_index(summary->collections.rows, struct dt_listed, i);

        if (row->is_stretched)
            longest = MAX(longest, row->ns);
    }
    return longest;
}

static struct runs *runs_of(GArray *all, struct dt_actor *actor) {
    for (unsigned i = 0; i < all->len; i++) {
        struct runs *runs = &g_array_index(all, struct runs, i);

        if (runs->actor == actor)
            return runs;
    }
    struct runs runs = {.actor = actor, .in = ""};
    g_array_append_val(all, runs);
    return &g_array_index(all, struct runs, all->len - 1);
}

static int64_t without_stops(const struct dt_summary *summary, const struct dt_seen_node *node,
                             int64_t ns) {
    return (int64_t)((double)ns * dt_part_not_stopped(summary, node));
}

/* The rows of the summary are sorted, the longest first, and bounded. */
static void add_by_events(const struct dt_summary *summary, GArray *all) {
    int64_t delay = delay_by_host(summary);

    for (unsigned i = 0; i < summary->long_runs.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->long_runs.rows, struct dt_listed, i);

        if (row->ns <= delay)
            return;
        if (without_stops(summary, row->node, row->ns) < dt_limits.held_scheduler.time)
            continue;
        struct runs *runs = runs_of(all, row->actor);
        if (!runs->count++) {
            runs->longest = row->ns;
            runs->in = row->text;
        }
        runs->sum += row->ns;
    }
}

/* A process that does not answer is on a normal scheduler. */
static void add_by_samples(const struct dt_summary *summary, GArray *all) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        const struct dt_activity *of = actor->activity;

        if (!of->sampled || of->sampled->native || of->dirty_cpu || of->dirty_io ||
            without_stops(summary, actor->node, of->sampled->longest_running) <
                dt_limits.held_scheduler.samples)
            continue;
        struct runs *runs = runs_of(all, actor);
        runs->longest = MAX(runs->longest, of->sampled->longest_running);
        runs->sum = MAX(runs->sum, runs->longest);
    }
}

static int longest_run_first(const void *a, const void *b) {
    const struct runs *x = a, *y = b;
    int by = dt_compare(y->longest, x->longest);

    return by ? by : dt_compare((int64_t)x->actor->number, (int64_t)y->actor->number);
}

static void held(struct dt_summary *summary) {
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(struct runs));
    unsigned found = 0;

    add_by_events(summary, all);
    add_by_samples(summary, all);
    g_array_sort(all, longest_run_first);
    for (unsigned i = 0; i < all->len && found < dt_limits.held_scheduler.per_rule; i++) {
        const struct runs *runs = &g_array_index(all, struct runs, i);

        if (!dt_is_share(runs->sum, dt_summary_ns(summary), dt_limits.held_scheduler.share) ||
            is_reported(summary, runs->actor) || dt_has_copied(summary, runs->actor))
            continue;
        g_autofree char *name = dt_actor_show_where(runs->actor);
        g_autofree char *times = runs->count ? dt_counted(runs->count, "time") : NULL;
        bool is_long = runs->longest >= dt_limits.held_scheduler.very_long;
        dt_find(summary, DT_RULE_held_scheduler, is_long ? DT_HIGH : DT_MEDIUM, runs->actor,
                "%s kept a scheduler for up to %s without a pause, %s%s%s", name,
                dt_show_ns(runs->longest).text, times ? times : "in a native function",
                *runs->in ? "; it had started to run in " : "", runs->in);
        found++;
    }
}

/* -- Priorities ------------------------------------------------------------------------- */

static int64_t ran(const struct dt_actor *actor) {
    return actor->activity->run;
}

static struct dt_actor *busiest(const GPtrArray *actors, const struct dt_seen_node *node) {
    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (actor->node == node)
            return actor;
    }
    return NULL;
}

static void starved(struct dt_summary *summary, const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);
    struct dt_actor *longest = NULL;
    int64_t ns = 0;
    uint64_t count = 0;

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        const struct dt_sampled *sampled = actor->activity->sampled;

        if (actor->node != node || !sampled ||
            without_stops(summary, node, sampled->longest_runnable) <
                dt_limits.starved_processes.time)
            continue;
        count++;
        if (sampled->longest_runnable > ns) {
            longest = actor;
            ns = sampled->longest_runnable;
        }
    }
    dt_top_sort(actors, ran);
    struct dt_actor *runs = busiest(actors, node);
    if (!longest || !runs || !dt_has_busy_schedulers(summary, node) ||
        ns <= 2 * delay_by_host(summary) ||
        !dt_is_share(runs->activity->run, dt_recorded(summary), dt_limits.starved_processes.share))
        return;
    g_autofree char *victim = dt_actor_show_where(longest);
    g_autofree char *name = dt_actor_show_where(runs);
    g_autoptr(GString) others = g_string_new(NULL);
    if (count > 1)
        g_string_printf(others, " and %" PRIu64 " more", count - 1);
    dt_find(summary, DT_RULE_starved_processes, DT_HIGH, runs,
            "%s ran for %s of %s, while %s%s got no scheduler for up to %s", name,
            dt_show_share((double)runs->activity->run / (double)dt_recorded(summary)).text,
            dt_recorded_words(summary), victim, others->str, dt_show_ns(ns).text);
}

void dt_find_in_schedulers(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);

        for (size_t n = 0; n < G_N_ELEMENTS(pools); n++)
            exhausted(summary, node, &pools[n]);
        starved(summary, node);
    }
    held(summary);
}
