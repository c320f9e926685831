/* The memory of processes, and garbage collections. */
#include "shared/amounts.h"
#include "shared/arrays.h"
#include "summary/findings/rules.h"
#include "summary/heap_growth.h"
#include "summary/sorted_rows.h"

/* Bytes per second. */
static double growth(const struct dt_heap *heap) {
    int64_t ns = heap->end - heap->begin;
    uint64_t bytes = (heap->last - heap->first) * DT_BYTES_PER_WORD;

    return ns > 0 ? (double)bytes * DT_NS_PER_S / (double)ns : 0;
}

/* Waiting messages are on the heap, too, and have their own finding. */
static bool has_queue(const struct dt_actor *actor) {
    return actor->activity->sampled &&
           actor->activity->sampled->max_queue >= dt_limits.long_queue.messages;
}

/* It exited normally and freed its memory, or it stopped growing for longer than it grew. */
static bool has_stopped(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_heap *heap = actor->activity->heap;

    return (actor->ended != DT_NO_VALUE && !actor->activity->has_crashed) ||
           summary->period.end - heap->last_rise > heap->last_rise - heap->begin;
}

/* A growing heap is reported as such; its consequences are not reported again. */
static bool grows(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_heap *heap = actor->activity->heap;

    return heap && !has_queue(actor) && !dt_is_formatting(summary, actor) &&
           dt_heap_has_grown(heap) && !has_stopped(summary, actor) &&
           heap->rises >= dt_limits.growing_heap.rises &&
           heap->last * DT_BYTES_PER_WORD >= dt_limits.growing_heap.heap &&
           growth(heap) >= dt_limits.growing_heap.per_s;
}

static int64_t by_heap(const struct dt_actor *actor) {
    return actor->activity->heap ? (int64_t)actor->activity->heap->last : 0;
}

static void growing(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, by_heap);
    uint64_t left = dt_limits.growing_heap.per_rule;

    for (unsigned i = 0; i < actors->len && left > 0; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (!grows(summary, actor))
            continue;
        left--;
        uint64_t bytes = actor->activity->heap->last * DT_BYTES_PER_WORD;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_growing_heap,
                bytes >= dt_limits.growing_heap.huge ? DT_HIGH : DT_MEDIUM, actor,
                "%s accumulates data: its heap grew by %s per second for %s, to %s after a "
                "major garbage collection",
                name, dt_show_bytes((uint64_t)growth(actor->activity->heap)).text,
                dt_show_ns(actor->activity->heap->end - actor->activity->heap->begin).text,
                dt_show_bytes(bytes).text);
    }
}

/* The growth is not on its heap, which collections show to be small. */
static bool grows_off_heap(const struct dt_summary *summary, const struct dt_actor *actor,
                           struct dt_series_growth *growth) {
    const struct dt_sampled *of = actor->activity->sampled;

    return of && actor->activity->collections &&
           of->max_queue <= dt_limits.growing_off_heap.queue && actor->ended == DT_NO_VALUE &&
           dt_series_grows(&of->memory, summary->period.end, growth) &&
           growth->to >= (int64_t)dt_limits.growing_off_heap.memory &&
           growth->per_s >= dt_limits.growing_off_heap.per_s &&
           actor->activity->heap_max * DT_BYTES_PER_WORD * 100 <
               (uint64_t)growth->to * (uint64_t)dt_limits.growing_off_heap.heap;
}

static void growing_off_heap(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_memory);
    uint64_t left = dt_limits.growing_off_heap.per_rule;

    for (unsigned i = 0; i < actors->len && left > 0; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        struct dt_series_growth growth;

        if (!grows_off_heap(summary, actor, &growth))
            continue;
        left--;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_growing_off_heap, DT_MEDIUM, actor,
                "%s: its memory grew by %s per second for %s, to %s, but its heap is at most %s: "
                "the rest is outside of it, as monitors and links are",
                name, dt_show_bytes((uint64_t)growth.per_s).text,
                dt_show_ns(growth.end - growth.begin).text, dt_show_bytes((uint64_t)growth.to).text,
                dt_show_bytes(actor->activity->heap_max * DT_BYTES_PER_WORD).text);
    }
}

/* Of all processes of a node. */
static int64_t last_sample(const GPtrArray *actors, const struct dt_seen_node *node) {
    int64_t last = DT_NO_VALUE;

    for (unsigned i = 0; i < actors->len; i++) {
        const struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (actor->node == node && actor->activity->sampled)
            last = MAX(last, actor->activity->sampled->last);
    }
    return last;
}

/* A process that was not sampled lately is smaller now, or has exited while exits were not traced.
 */
static bool is_past(const GPtrArray *actors, const struct dt_actor *actor) {
    return last_sample(actors, actor->node) - actor->activity->sampled->last >
           dt_limits.large_process.ago;
}

static void large(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_memory);
    uint64_t found = 0;

    for (unsigned i = 0; i < actors->len && found < dt_limits.large_process.per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        uint64_t memory = (uint64_t)dt_top_by_memory(actor);

        if (memory < dt_limits.large_process.memory)
            break;
        if (grows(summary, actor) || dt_is_formatting(summary, actor) || is_past(actors, actor))
            continue;
        found++;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_large_process,
                memory >= dt_limits.large_process.huge ? DT_HIGH : DT_MEDIUM, actor,
                "%s uses %s of memory, with at most %" PRIu64 " messages in its queue", name,
                dt_show_bytes(memory).text, actor->activity->sampled->max_queue);
    }
}

/* The kind and parent with the most processes at the end, or NULL. */
static const struct dt_lives_row *most_alive(const struct dt_summary *summary,
                                             const struct dt_seen_node *node) {
    g_autoptr(GPtrArray) rows = dt_rows_of(summary->lives.rows);
    const struct dt_lives_row *most = NULL;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_lives_row *row = g_ptr_array_index(rows, i);

        if (row->kind == DT_PROCESS && row->example->node == node &&
            (!most || row->alive > most->alive))
            most = row;
    }
    return most;
}

/* A process of the row that has not run in any sample, and whose memory is typical; else NULL. */
static struct dt_actor *idle_one(const struct dt_summary *summary, GPtrArray *largest_first,
                                 const struct dt_lives_row *row, uint64_t average) {
    for (unsigned i = 0; i < largest_first->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(largest_first, i);
        const struct dt_sampled *of = actor->activity->sampled;

        if (!of || of->max_memory < average / 2)
            return NULL;
        if (*of->last_in && of->reductions == 0 && of->count >= dt_limits.idle_memory.samples &&
            dt_lives_of(&summary->lives, actor) == row)
            return actor;
    }
    return NULL;
}

static void idle(struct dt_summary *summary, struct dt_seen_node *node, GPtrArray *largest_first) {
    int64_t memory = dt_last_of(summary, node, "memory_processes"),
            processes = dt_last_of(summary, node, "processes");

    if (memory < (int64_t)dt_limits.idle_memory.memory || processes == 0 ||
        memory / processes < (int64_t)dt_limits.idle_memory.average ||
        !dt_is_share(memory, dt_last_of(summary, node, "memory_total"),
                     dt_limits.idle_memory.share))
        return;
    const struct dt_lives_row *row = most_alive(summary, node);
    if (!row || !dt_is_share((int64_t)row->alive, processes, dt_limits.idle_memory.of_processes))
        return;
    uint64_t average = (uint64_t)(memory / processes);
    struct dt_actor *example = idle_one(summary, largest_first, row, average);
    uint64_t most = (uint64_t)dt_top_by_memory(g_ptr_array_index(largest_first, 0));
    if (!example || most > (uint64_t)memory / dt_limits.idle_memory.largest)
        return;
    g_autofree char *parent = dt_actor_show_where(row->parent),
                    *shown = dt_actor_show_where(example);
    dt_find(summary, DT_RULE_idle_memory, DT_LOW, row->parent,
            "%" PRId64 " processes use %s of memory, %s on average: %" PRIu64
            " are %s, started by %s; %s does not run, waits in %s and has %s",
            processes, dt_show_bytes((uint64_t)memory).text, dt_show_bytes(average).text,
            row->alive, *row->what ? row->what : "processes", parent, shown,
            example->activity->sampled->last_in,
            dt_show_bytes(example->activity->sampled->max_memory).text);
}

static void idle_on_each(struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_memory);

    for (unsigned i = 0; i < nodes->len && actors->len; i++)
        idle(summary, g_ptr_array_index(nodes, i), actors);
}

static void longest(struct dt_summary *summary, const struct dt_listed *row) {
    g_autofree char *name = dt_actor_show_where(row->actor);

    dt_find(summary, DT_RULE_long_collection,
            row->ns >= dt_limits.long_collection.very_long ? DT_HIGH : DT_MEDIUM, row->actor,
            "%s: a %s garbage collection took %s, the longest", name,
            row->is_major ? "major" : "minor", dt_show_ns(row->ns).text);
}

static void unexplained(struct dt_summary *summary, const struct dt_listed *row, uint64_t words) {
    g_autofree char *name = dt_actor_show_where(row->actor);

    dt_find(
        summary, DT_RULE_lost_cpu, DT_LOW, row->actor,
        "the node is short of CPU: %s lost its CPU during a garbage collection that took %s for "
        "%" PRIu64 " words (inferred)",
        name, dt_show_ns(row->ns).text, words);
}

/* Another finding has the cause of its collections. */
static bool is_explained(const struct dt_summary *summary, struct dt_actor *actor) {
    return dt_is_formatting(summary, actor) || dt_has_copied(summary, actor);
}

/* The rows are sorted, longest first. */
static void collections(struct dt_summary *summary) {
    bool has_longest = false, has_unexplained = false;

    for (unsigned i = 0; i < summary->collections.rows->len; i++) {
        const struct dt_listed *row =
            &g_array_index(summary->collections.rows, struct dt_listed, i);
        uint64_t words = row->heap + row->reclaimed;

        if (!row->is_stretched && !has_longest && row->ns >= dt_limits.long_collection.time &&
            !grows(summary, row->actor) && !is_explained(summary, row->actor)) {
            has_longest = true;
            longest(summary, row);
        }
        if (row->is_stretched && !has_unexplained && row->ns >= dt_limits.lost_cpu.time &&
            dt_part_not_stopped(summary, row->node) == 1) {
            has_unexplained = true;
            unexplained(summary, row, words);
        }
    }
}

static void collecting(struct dt_summary *summary) {
    unsigned found = 0;

    for (unsigned i = 0; i < summary->processes.actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(summary->processes.actors, i);
        int64_t all = actor->activity->run + actor->activity->collecting;

        if (!actor->activity->ran || actor->activity->collecting < dt_limits.collecting.time ||
            !dt_is_share(actor->activity->collecting, all, dt_limits.collecting.share) ||
            !dt_is_share(actor->activity->collecting, dt_recorded(summary),
                         dt_limits.collecting.of_recording) ||
            grows(summary, actor) || is_explained(summary, actor))
            continue;
        if (found++ >= dt_limits.collecting.per_rule)
            return;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_collecting, DT_MEDIUM, actor,
                "%s: %s of its time on a scheduler is garbage collection (%s)", name,
                dt_show_share((double)actor->activity->collecting / (double)all).text,
                dt_show_ns(actor->activity->collecting).text);
    }
}

void dt_find_in_memory(struct dt_summary *summary) {
    growing(summary);
    growing_off_heap(summary);
    large(summary);
    idle_on_each(summary);
    collections(summary);
    collecting(summary);
}
