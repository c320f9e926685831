#include "summary/copies.h"

#include "summary/activity.h"
#include "summary/findings/limits.h"

/* The slowest copies of large terms, on a machine with more busy threads than CPUs, took 105 ns per
   word. */
enum { MOST_PER_WORD_NS = 200 };

static struct dt_arrival *has_arrival(struct dt_actor *actor) {
    if (!actor->activity->arrival) {
        actor->activity->arrival = g_new0(struct dt_arrival, 1);
        actor->activity->arrival->time = DT_NO_VALUE;
    }
    return actor->activity->arrival;
}

static void drop_pending(struct dt_arrival *arrival) {
    g_clear_pointer(&arrival->from, dt_actor_drop);
}

/* Adds the pending copy, if the data that arrived explains its time. */
static void resolve(struct dt_pairs *copies, struct dt_actor *to) {
    struct dt_arrival *arrival = to->activity->arrival;
    struct dt_pair *row;

    if (!arrival->from || arrival->time == DT_NO_VALUE || arrival->time < arrival->begin)
        return;
    if (arrival->ns <= (int64_t)(arrival->bytes / DT_BYTES_PER_WORD) * MOST_PER_WORD_NS) {
        row = dt_pairs_row(copies, arrival->from, arrival->is_spawn ? dt_actor_kind(to) : to,
                           arrival->is_spawn ? "spawn" : "send");
        row->count++;
        row->bytes = MAX(row->bytes, arrival->bytes);
        dt_quantiles_add(&row->took, (uint64_t)arrival->ns);
        arrival->time = DT_NO_VALUE;
    }
    drop_pending(arrival);
}

static void took(struct dt_pairs *copies, struct dt_actor *from, struct dt_actor *to, int64_t begin,
                 int64_t end, bool is_spawn) {
    struct dt_arrival *arrival;

    if (end - begin < dt_limits.large_messages.time)
        return;
    arrival = has_arrival(to);
    drop_pending(arrival);
    arrival->from = dt_actor_keep(from);
    arrival->begin = begin;
    arrival->ns = end - begin;
    arrival->is_spawn = is_spawn;
    resolve(copies, to);
}

/* The copy of its last message is complete, if it has not paused since. */
static void complete(struct dt_pairs *copies, struct dt_actor *from, int64_t run_begin,
                     int64_t time) {
    struct dt_actor *to = g_steal_pointer(&from->activity->sends_to);

    if (to && from->activity->sent_at >= run_begin)
        took(copies, from, to, from->activity->sent_at, time, false);
    dt_actor_drop(to);
}

/* The begin of its current run; INT64_MAX if it does not run. */
static int64_t runs_since(const struct dt_actor *actor) {
    const struct dt_process *process = actor->process;

    return process && process->state == DT_STATE_RUNNING ? process->since : INT64_MAX;
}

void dt_copies_sent(struct dt_pairs *copies, struct dt_actor *from, struct dt_actor *to,
                    int64_t time) {
    complete(copies, from, runs_since(from), time);
    from->activity->sends_to = dt_actor_keep(to);
    from->activity->sent_at = time;
}

void dt_copies_spawned(struct dt_pairs *copies, struct dt_actor *parent, struct dt_actor *child,
                       int64_t time) {
    int64_t since = runs_since(parent);

    if (since <= time)
        took(copies, parent, child, MAX(since, parent->activity->sent_at), time, true);
    parent->activity->sent_at = time;
}

/* The arguments of a new process are there before its first collection. */
static void collected(struct dt_pairs *copies, struct dt_actor *actor,
                      const struct dt_interval *i) {
    bool is_first = i->process->began != DT_NO_VALUE && actor->activity->collections == 0;
    uint64_t before = is_first ? 0 : i->before, after = i->reclaimed + i->heap + i->old_heap;
    uint64_t bytes = MIN(after, UINT64_MAX / DT_BYTES_PER_WORD) * DT_BYTES_PER_WORD;

    if (i->is_open || after <= before)
        return;
    bytes -= MIN(before, UINT64_MAX / DT_BYTES_PER_WORD) * DT_BYTES_PER_WORD;
    if (bytes < dt_limits.large_messages.size)
        return;
    struct dt_arrival *arrival = has_arrival(actor);
    arrival->time = i->end;
    arrival->bytes = bytes;
    resolve(copies, actor);
}

void dt_copies_interval(struct dt_pairs *copies, struct dt_actor *actor,
                        const struct dt_interval *i) {
    if (i->state == DT_STATE_RUNNING)
        complete(copies, actor, i->begin, i->end);
    else if (i->state == DT_STATE_COLLECTING)
        collected(copies, actor, i);
}

void dt_copies_forget(struct dt_actor *actor) {
    g_clear_pointer(&actor->activity->sends_to, dt_actor_drop);
    if (actor->activity->arrival)
        drop_pending(actor->activity->arrival);
}
