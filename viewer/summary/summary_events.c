#include "summary/summary_events.h"

#include <string.h>

#include "model/model.h"
#include "shared/elixir.h"
#include "shared/term.h"
#include "shared/texts.h"
#include "summary/span_parts.h"
#include "summary/findings/limits.h"

/* Bytes of a request's shape, and of an example text. */
enum { SHAPE = 80, EXAMPLE = 160 };

/* A timer ends a wait at a full millisecond, so few such waits are shorter. A preempted process
   waits for less time on a node with idle schedulers. */
#define SHORTEST_TIMER_NS INT64_C(100000)

static void drop_actor(void *actor) {
    dt_actor_drop(actor);
}

/* -- Nodes and processes ---------------------------------------------------------------- */

static void node(void *data, struct dt_node *node) {
    struct dt_summary *summary = data;

    struct dt_seen_node *seen = dt_seen_node_learn(&summary->actors.nodes, node);
    if (node->has_lives) {
        dt_summary_recorded(summary, seen, DT_RECORDED_SPAWNS);
        dt_summary_recorded(summary, seen, DT_RECORDED_EXITS);
    }
    dt_summary_at(summary, node->first);
    dt_summary_at(summary, node->last);
}

static void process(void *data, struct dt_process *process, int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    struct dt_actor *actor = dt_actor_of(&summary->actors, process);
    dt_actor_learn_parent(actor);
    if (process->kind == DT_PORT)
        dt_summary_recorded(summary, actor->node, DT_RECORDED_PORTS);
    if (process->kind != DT_PROCESS)
        return;
    summary->processes_seen++;
    if (actor->node)
        actor->node->processes++;
    if (process->began != DT_NO_VALUE)
        dt_summary_recorded(summary, actor->node, DT_RECORDED_SPAWNS);
    if (process->began == time && process->parent)
        dt_copies_spawned(&summary->copies, dt_actor_of(&summary->actors, process->parent), actor,
                          time);
}

static void process_named(void *data, struct dt_process *process, int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    struct dt_actor *actor = dt_actor_of(&summary->actors, process);
    dt_actor_learn_parent(actor);
    dt_totals_renamed(actor);
}

/* A traced one. */
static struct dt_actor *count_exit(struct dt_summary *summary, const struct dt_exit *e) {
    struct dt_actor *actor = dt_summary_traced(summary, e->process);

    dt_summary_recorded(summary, actor->node, DT_RECORDED_EXITS);
    if (e->kind == DT_CRASH)
        dt_totals_add(&summary->totals, actor, DT_TOTAL_CRASHED, e->time, 1);
    return actor;
}

static void process_exited(void *data, const struct dt_exit *e) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, e->time);
    struct dt_actor *actor =
        e->is_logged ? dt_actor_of(&summary->actors, e->process) : count_exit(summary, e);
    actor->activity->has_crashed = e->kind == DT_CRASH;
    dt_purges_exited(&summary->purges, actor, e);
    if (e->kind == DT_ORDERLY)
        return;
    dt_unclear_resolve(&summary->unclear_exits, &summary->crashes, actor, e->time, e->reason);
    if (e->kind == DT_RESULT)
        return;
    GPtrArray *linked = g_ptr_array_new_with_free_func(drop_actor);
    for (unsigned i = 0; i < e->links; i++)
        g_ptr_array_add(linked, dt_actor_keep(dt_actor_of(&summary->actors, e->linked[i])));
    struct dt_listed exit = {.actor = actor,
                             .node = actor->node,
                             .time = e->time,
                             .text = g_strdup(e->reason),
                             .linked = linked};
    if (e->kind == DT_CRASH)
        dt_list_add(&summary->crashes, exit);
    else
        dt_unclear_add(&summary->unclear_exits, exit);
}

static void process_gone(void *data, struct dt_process *process) {
    struct dt_summary *summary = data;
    /* Its initial call may become known later than its start. */
    if (process->began != DT_NO_VALUE)
        dt_totals_add(&summary->totals, dt_actor_of(&summary->actors, process), DT_TOTAL_STARTED,
                      process->began, 1);
    struct dt_actor *actor = dt_actor_gone(process);

    if (!actor)
        return;
    g_clear_pointer(&actor->activity->stack, g_array_unref);
    g_clear_pointer(&actor->activity->span_parts, g_array_unref);
    dt_copies_forget(actor);
    if (actor->kind == DT_PROCESS || actor->kind == DT_PORT)
        dt_lives_add(&summary->lives, actor);
    if (actor->kind == DT_PROCESS)
        dt_top_add(&summary->processes, actor);
    else if (actor->kind == DT_PORT)
        dt_top_add(&summary->ports, actor);
    dt_actor_drop(actor);
}

/* -- Intervals -------------------------------------------------------------------------- */

static void on_runnable(struct dt_summary *summary, struct dt_actor *actor,
                        const struct dt_interval *i) {
    int64_t ns = i->end - i->begin;

    actor->activity->runnable += ns;
    dt_load_time(&summary->load, &summary->period, actor->node, DT_LOAD_RUNNABLE, i->begin, i->end);
    if (ns > actor->activity->longest_wait) {
        actor->activity->longest_wait = ns;
        actor->activity->longest_wait_at = i->begin;
    }
    if (dt_list_wants(&summary->waits, ns))
        dt_list_add(&summary->waits, (struct dt_listed){.actor = actor,
                                                        .node = actor->node,
                                                        .time = i->begin,
                                                        .ns = ns,
                                                        .text = g_strdup(i->out),
                                                        .inferred = i->inferred});
}

static void on_collecting(struct dt_summary *summary, struct dt_actor *actor,
                          const struct dt_interval *i) {
    int64_t ns = i->end - i->begin, credible = MIN(ns, i->explained);

    dt_summary_recorded(summary, actor->node, DT_RECORDED_COLLECTIONS);
    actor->activity->collecting += credible;
    actor->activity->collections++;
    dt_totals_add(&summary->totals, actor, DT_TOTAL_COLLECTIONS, i->end, 1);
    dt_totals_add(&summary->totals, actor, DT_TOTAL_COLLECTING, i->end, (uint64_t)credible);
    dt_heap_collected(&actor->activity->heap, i);
    if (!i->is_open) {
        actor->activity->heap_max = MAX(actor->activity->heap_max, i->heap + i->old_heap);
        actor->activity->binaries =
            MIN(i->binaries, UINT64_MAX / DT_BYTES_PER_WORD) * DT_BYTES_PER_WORD;
    }
    dt_load_time(&summary->load, &summary->period, actor->node, DT_LOAD_COLLECTING, i->begin,
                 i->begin + credible);
    if (i->is_open || !dt_list_wants(&summary->collections, ns))
        return;
    dt_list_add(&summary->collections, (struct dt_listed){.actor = actor,
                                                          .node = actor->node,
                                                          .time = i->begin,
                                                          .ns = ns,
                                                          .is_major = i->is_major,
                                                          .is_stretched = dt_is_stretched(i),
                                                          .inferred = i->inferred,
                                                          .reclaimed = i->reclaimed,
                                                          .heap = i->heap + i->old_heap});
}

/* A run without a pause. The kind of scheduler must be certain. */
static void on_normal(struct dt_summary *summary, struct dt_actor *actor,
                      const struct dt_interval *i) {
    int64_t ns = i->end - i->begin;

    if (ns < dt_limits.large_objects.time || i->is_open || i->inferred ||
        actor->kind != DT_PROCESS || !i->scheduler || i->scheduler->is_cpu ||
        !g_str_has_prefix(i->scheduler->name, "scheduler "))
        return;
    actor->activity->long_runs++;
    actor->activity->longest_run = MAX(actor->activity->longest_run, ns);
    if (ns < dt_limits.held_scheduler.time)
        return;
    dt_list_add(&summary->long_runs, (struct dt_listed){.actor = actor,
                                                        .node = actor->node,
                                                        .time = i->begin,
                                                        .ns = ns,
                                                        .text = g_strdup(i->in)});
}

static void on_running(struct dt_summary *summary, struct dt_actor *actor,
                       const struct dt_interval *i) {
    enum dt_scheduler_kind kind = i->scheduler ? i->scheduler->kind : DT_SCHEDULER_NORMAL;
    bool is_io = kind == DT_SCHEDULER_DIRTY_IO;

    dt_summary_recorded(summary, actor->node, DT_RECORDED_SCHEDULING);
    actor->activity->is_traced = actor->activity->ran = true;
    *(is_io ? &actor->activity->dirty_io : &actor->activity->run) += i->end - i->begin;
    dt_totals_add(&summary->totals, actor, DT_TOTAL_RUNS, i->end, 1);
    if (!is_io)
        dt_totals_add(&summary->totals, actor, DT_TOTAL_RUN, i->end, (uint64_t)(i->end - i->begin));
    if (kind == DT_SCHEDULER_DIRTY_CPU)
        actor->activity->dirty_cpu += i->end - i->begin;
    if (kind != DT_SCHEDULER_NORMAL)
        dt_names_row(&summary->dirty[kind], actor->node, i->in)->total += i->end - i->begin;
    else
        on_normal(summary, actor, i);
    if (actor->kind == DT_PROCESS)
        dt_load_time(&summary->load, &summary->period, actor->node,
                     is_io ? DT_LOAD_DIRTY_IO : DT_LOAD_RUN, i->begin, i->end);
}

/* Adds a process and its wakes to its kind, or removes them. */
static void count_wakes(struct dt_actor *kind, const struct dt_activity *activity, int times) {
    kind->activity->woken_processes += (uint64_t)times;
    for (unsigned wake = 0; wake < DT_WAKES; wake++)
        kind->activity->wakes[wake] += (uint64_t)times * activity->wakes[wake];
}

/* Counts a wake of a process for it and for its kind. */
static void on_wake(struct dt_actor *actor, enum dt_wake wake) {
    struct dt_activity *activity = actor->activity;
    struct dt_actor *kind = dt_actor_kind(actor);

    /* Its initial call may become known later than its first wake. */
    if (activity->woken_kind != kind) {
        if (activity->woken_kind)
            count_wakes(activity->woken_kind, activity, -1);
        count_wakes(kind, activity, 1);
        activity->woken_kind = kind;
    }
    activity->wakes[wake]++;
    kind->activity->wakes[wake]++;
}

static void interval(void *data, const struct dt_interval *i) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, i->end);
    struct dt_actor *actor = dt_actor_of(&summary->actors, i->process);
    dt_literals_interval(&summary->literals, actor, i);
    dt_copies_interval(&summary->copies, actor, i);
    dt_formatting_interval(&actor->activity->formatting, i, actor->activity->sent);
    switch (i->state) {
    case DT_STATE_RUNNING:
        on_running(summary, actor, i);
        break;
    case DT_STATE_RUNNABLE:
        actor->activity->is_traced = actor->activity->ran = true;
        if (actor->kind == DT_PROCESS)
            on_runnable(summary, actor, i);
        break;
    case DT_STATE_WAITING:
        actor->activity->is_traced = actor->activity->ran = true;
        actor->activity->waiting += i->end - i->begin;
        if (actor->kind == DT_PROCESS && i->is_unexplained &&
            i->end - i->begin >= SHORTEST_TIMER_NS)
            on_wake(actor, DT_WAKE_UNEXPLAINED);
        break;
    case DT_STATE_COLLECTING:
        actor->activity->is_traced = true;
        on_collecting(summary, actor, i);
        break;
    default:
        break;
    }
}

static void mailbox(void *data, struct dt_process *process, int64_t time) {
    struct dt_summary *summary = data;
    struct dt_actor *actor = dt_actor_of(&summary->actors, process);

    (void)time;
    actor->activity->mailbox_max = MAX(actor->activity->mailbox_max, process->mailbox);
}

/* -- Calls ------------------------------------------------------------------------------ */

/* A call that has not ended. */
struct called {
    uint64_t number;
    struct dt_named *row;
};

static void call_begin(void *data, struct dt_frame *frame) {
    struct dt_summary *summary = data;
    struct dt_actor *actor = dt_summary_traced(summary, frame->process);

    dt_summary_recorded(summary, actor->node, DT_RECORDED_CALLS);
    actor->activity->call_events++;
    if (!frame->inferred) {
        dt_literals_called(&summary->literals, actor, frame->entry, frame->begin);
        dt_summary_at(summary, frame->begin);
        dt_load_count(&summary->load, &summary->period, actor->node, DT_LOAD_CALLS, frame->begin);
    }
    if (!actor->activity->stack)
        actor->activity->stack = g_array_new(false, false, sizeof(struct called));
    struct called called = {frame->number,
                            dt_names_row(&summary->calls, actor->node, frame->entry)};
    g_array_append_val(actor->activity->stack, called);
}

/* Pops a call from the stack. */
static struct dt_named *leave(struct dt_summary *summary, struct dt_actor *actor,
                              const struct dt_frame *frame, bool *is_outermost) {
    GArray *stack = actor->activity->stack;
    unsigned n = stack ? stack->len : 0;

    while (n > 0 && g_array_index(stack, struct called, n - 1).number != frame->number)
        n--;
    *is_outermost = true;
    if (n == 0)
        return dt_names_row(&summary->calls, actor->node, frame->entry);
    struct dt_named *row = g_array_index(stack, struct called, n - 1).row;
    g_array_set_size(stack, n - 1);
    for (unsigned i = 0; i + 1 < n; i++)
        if (g_array_index(stack, struct called, i).row == row)
            *is_outermost = false;
    return row;
}

static void call_end(void *data, struct dt_frame *frame) {
    struct dt_summary *summary = data;
    struct dt_actor *actor = dt_actor_of(&summary->actors, frame->process);
    bool is_outermost;
    struct dt_named *row = leave(summary, actor, frame, &is_outermost);

    row->count++;
    dt_slices_add(&row->slices, actor, frame->end, 1);
    if (frame->left == DT_LEFT_EXCEPTION)
        row->failed++;
    if (!dt_is_measured(frame)) {
        row->inferred++;
        return;
    }
    dt_summary_at(summary, frame->end);
    dt_summary_recorded(summary, actor->node, DT_RECORDED_RETURNS);
    row->measured++;
    actor->activity->call_events++;
    if (is_outermost)
        row->total += frame->end - frame->begin;
    if (frame->own > 0)
        row->own += frame->own;
    dt_quantiles_add(&row->took, (uint64_t)MAX(frame->end - frame->begin, 0));
}

/* -- Messages --------------------------------------------------------------------------- */

/* The process of module `timer' sends messages when they are due, and replies to its callers. */
static bool is_of_timer(const struct dt_message *m) {
    return m->from && strcmp(m->from->name, "timer_server") == 0 &&
           !g_str_has_prefix(m->text, "{#Ref<") && !g_str_has_prefix(m->text, "{[alias|");
}

static void sent(void *data, struct dt_message *m) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, m->sent);
    summary->sent++;
    struct dt_actor *from = dt_summary_traced(summary, m->from);
    struct dt_seen_node *node = from ? from->node : NULL;
    dt_summary_recorded(summary, node, DT_RECORDED_SENDS);
    if (from)
        from->activity->sent++;
    dt_totals_add(&summary->totals, from, DT_TOTAL_SENT, m->sent, 1);
    if (from && m->to && m->to->kind == DT_PROCESS && m->to->node == m->from->node)
        dt_copies_sent(&summary->copies, from, dt_actor_of(&summary->actors, m->to), m->sent);
    if (m->to && is_of_timer(m))
        on_wake(dt_actor_of(&summary->actors, m->to), DT_WAKE_TIMER);
    dt_purges_sent(&summary->purges, node, m);
    dt_literals_sent(&summary->literals, node, m);
    dt_load_count(&summary->load, &summary->period, node, DT_LOAD_SENT, m->sent);
}

static void delivered(void *data, struct dt_message *m) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, m->delivered);
    struct dt_actor *to = dt_summary_traced(summary, m->to);
    summary->reached++;
    if (to)
        to->activity->reached++;
    /* Without recorded deliveries, messages from timers, monitors and other nodes are missing, so
       the count would be too low. */
    if (m->to && !m->to->node->has_deliveries)
        return;
    summary->received++;
    dt_summary_recorded(summary, to ? to->node : NULL, DT_RECORDED_DELIVERIES);
    if (!to)
        return;
    to->activity->received++;
    dt_totals_add(&summary->totals, to, DT_TOTAL_RECEIVED, m->delivered, 1);
    if (strcmp(m->timer, "clock_service") == 0)
        on_wake(to, DT_WAKE_TIMER);
    if (to->node && to->kind == DT_PROCESS)
        to->node->has_receipts = true;
}

static char *example_of(const char *text) {
    return dt_cut(text, EXAMPLE, "...");
}

/* The sender, or the kind of sender if only that is known. */
static struct dt_actor *sender_of(struct dt_summary *summary, const struct dt_message *m,
                                  const struct dt_actor *to) {
    if (m->from)
        return dt_actor_of(&summary->actors, m->from);
    if (!*m->timer)
        return NULL;
    if (strcmp(m->timer, "clock_service") == 0)
        return dt_actor_sum(&summary->actors, to ? to->node : NULL, "timers");
    return dt_actor_sum(&summary->actors, to ? to->node : NULL, m->timer);
}

/* Each call has a new alias, so aliases are summed. To be freed by g_free. */
static char *receiver_of(const char *to_text) {
    char *of_elixir = dt_elixir_alias(to_text);

    if (of_elixir)
        return of_elixir;
    return g_strdup(g_str_has_prefix(to_text, "#Ref") ? "unknown aliases" : to_text);
}

static void on_dead(struct dt_summary *summary, const struct dt_message *m, struct dt_actor *from,
                    struct dt_actor *to) {
    summary->dead_messages++;
    g_autofree char *name = to ? NULL : receiver_of(m->to_text);
    struct dt_pair *row = dt_pairs_row(&summary->dead, from, to, name);
    row->count++;
    if (!row->example)
        row->example = example_of(m->text);
}

static void message_gone(void *data, struct dt_message *m) {
    struct dt_summary *summary = data;
    struct dt_actor *to = m->to ? dt_actor_of(&summary->actors, m->to) : NULL;
    struct dt_actor *from = sender_of(summary, m, to);

    if (m->is_dead) {
        on_dead(summary, m, from, to);
        return;
    }
    if (!to && *m->to_text) {
        g_autofree char *name = receiver_of(m->to_text);

        to = dt_actor_sum(&summary->actors, from ? from->node : NULL, name);
    }
    struct dt_pair *row = dt_pairs_row(&summary->talks, from, to, NULL);
    row->count++;
    /* For the other messages, the send names both processes. */
    row->inferred += m->matched == DT_MATCHED_ORDER || m->matched == DT_MATCHED_EARLY;
    dt_requests_add(&summary->requests, &summary->actors, m);
}

static void took(struct dt_pair *row, const struct dt_server_call *c) {
    dt_quantiles_add(&row->took, (uint64_t)MAX(c->ended - c->began, 0));
    if (c->taken == DT_NO_VALUE)
        return;
    int64_t worked_until = c->deferred == DT_NO_VALUE ? c->ended : c->deferred;
    dt_quantiles_add(&row->queued, (uint64_t)MAX(c->taken - c->began - c->runnable, 0));
    dt_quantiles_add(&row->runnable, (uint64_t)c->runnable);
    dt_quantiles_add(&row->worked, (uint64_t)MAX(worked_until - c->taken, 0));
    dt_quantiles_add(&row->deferred, (uint64_t)MAX(c->ended - worked_until, 0));
}

static void server_call(void *data, const struct dt_server_call *c) {
    struct dt_summary *summary = data;
    struct dt_actor *caller = dt_actor_of(&summary->actors, c->caller),
                    *server = dt_actor_of(&summary->actors, c->server);

    dt_summary_recorded(summary, caller->node, DT_RECORDED_SERVER_CALLS);
    char shape[SHAPE];
    dt_term_shape(c->request, shape, sizeof shape);
    struct dt_pair *row = dt_pairs_row(&summary->server_calls, caller, server, shape);
    if (row->count == 0)
        row->example = example_of(c->request);
    row->count++;
    dt_slices_add(&row->slices, caller, c->began, 1);
    row->timeouts += c->outcome == DT_OUTCOME_TIMEOUT;
    row->downs += c->outcome == DT_OUTCOME_DOWN;
    row->refused += g_str_has_prefix(c->reply, "{not_granted,");
    if (c->outcome == DT_OUTCOME_REPLY)
        took(row, c);
    if (c->outcome == DT_OUTCOME_UNKNOWN && c->caller->ended == DT_NO_VALUE)
        dt_waits_called(&summary->stopped, caller, server);
}

/* -- Spans, counters, losses ------------------------------------------------------------ */

static void span(void *data, const struct dt_span *span) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, span->end);
    struct dt_actor *actor = dt_summary_traced(summary, span->process);
    dt_summary_recorded(summary, actor ? actor->node : NULL,
                        span->telemetry ? DT_RECORDED_TELEMETRY : DT_RECORDED_SPANS);
    struct dt_named *row =
        dt_names_row(span->telemetry ? &summary->telemetry : &summary->spans, NULL, span->name);
    row->count++;
    if (actor)
        dt_slices_add(&row->slices, actor, span->end, 1);
    row->key = span->telemetry && row != summary->telemetry.others ? span->telemetry->key : NULL;
    if (span->is_open)
        return;
    row->failed += strcmp(span->outcome, "ok") != 0;
    row->total += span->end - span->begin;
    if (span->telemetry && actor)
        dt_span_parts_ended(&actor->activity->span_parts, row, span->begin, span->end);
    dt_quantiles_add(&row->took, (uint64_t)MAX(span->end - span->begin, 0));
}

/* The longest period in which a share is near 1,000 per mille. */
static void note_full(struct dt_named *row, int64_t value, int64_t time) {
    if (value < DT_FULL || value > DT_PER_MILLE) {
        row->full_since = DT_NO_VALUE;
        return;
    }
    if (row->full_since == DT_NO_VALUE)
        row->full_since = time;
    if (row->full_begin != DT_NO_VALUE && time - row->full_since < row->full_end - row->full_begin)
        return;
    row->full_begin = row->full_since;
    row->full_end = time;
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    struct dt_seen_node *seen = dt_seen_node(&summary->actors.nodes, node);
    dt_summary_recorded(summary, seen, DT_RECORDED_COUNTERS);
    struct dt_named *row = dt_names_row(&summary->counters, seen, name);
    dt_set(&row->unit, unit);
    row->min = row->count ? MIN(row->min, value) : value;
    row->max = row->count ? MAX(row->max, value) : value;
    row->last = value;
    row->sum += (double)value;
    note_full(row, value, time);
    /* Only for shares, to compute their average. */
    if (value >= 0 && value <= DT_PER_MILLE)
        row->total += value;
    row->count++;
    if (!row->series)
        row->series = g_new0(struct dt_series, 1);
    dt_series_add(row->series, time, value);
}

static void table(void *data, struct dt_process *owner, const struct dt_table_sample *sample,
                  int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    dt_ets_tables_add(&summary->ets_tables, dt_actor_of(&summary->actors, owner), sample, time);
}

static void port_queue(void *data, struct dt_process *port, const struct dt_port_sample *sample,
                       int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    dt_port_queues_add(&summary->port_queues, dt_actor_of(&summary->actors, port), sample, time);
}

static void sockets(void *data, struct dt_process *owner, const struct dt_socket_sample *sample,
                    int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    dt_socket_owners_add(&summary->socket_owners, dt_actor_of(&summary->actors, owner), sample,
                         time);
}

static void lost(void *data, const struct dt_lost *lost) {
    struct dt_summary *summary = data;

    dt_purges_lost(&summary->purges);
    summary->lost_rows++;
    summary->lost_unknown |= lost->count == 0;
    summary->lost_events += lost->count;
    if (summary->lost->len >= DT_LISTED)
        return;
    struct dt_seen_lost seen = {.node = dt_seen_node(&summary->actors.nodes, lost->node),
                                .stream = g_strdup(lost->stream),
                                .begin = lost->begin,
                                .end = lost->end,
                                .count = lost->count};
    g_array_append_val(summary->lost, seen);
}

/* -- The end ---------------------------------------------------------------------------- */

/* Whether several unnamed processes of its kind came and went during the recording, as it did. */
static bool is_short_lived(const struct dt_actor *actor, const void *data) {
    enum { SEVERAL = 4 };
    const struct dt_summary *summary = data;

    if (!actor || actor->is_sum || actor->process || actor->kind != DT_PROCESS || *actor->name ||
        actor->began == DT_NO_VALUE || actor->ended == DT_NO_VALUE)
        return false;
    const struct dt_lives_row *lives = dt_lives_of(&summary->lives, actor);
    return lives && lives->started >= SEVERAL;
}

void dt_summary_end(struct dt_summary *summary, const struct dt_model *model) {
    summary->events = dt_model_events(model);
    summary->skipped = dt_model_skipped(model);
    summary->ended = dt_model_notes(model).ended;
    summary->stacks = dt_model_notes(model).stacks;
    dt_pairs_sum(&summary->server_calls, is_short_lived, summary);
    dt_top_cut(&summary->processes);
    dt_top_cut(&summary->ports);
    dt_list_sort(&summary->crashes);
    dt_list_sort(&summary->log);
    dt_list_sort(&summary->others);
    dt_list_sort(&summary->nodes_down);
    dt_list_sort(&summary->withheld);
    dt_list_sort(&summary->gave_up);
    dt_list_sort(&summary->long_runs);
    dt_list_sort(&summary->waits);
    dt_list_sort(&summary->collections);
}

const struct dt_sink dt_summary_collector = {
    .node = node,
    .node_gone = node,
    .process = process,
    .process_named = process_named,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = interval,
    .mailbox = mailbox,
    .call_begin = call_begin,
    .call_end = call_end,
    .sent = sent,
    .delivered = delivered,
    .message_gone = message_gone,
    .server_call = server_call,
    .span = span,
    .instant = dt_summary_instant,
    .counter = counter,
    .table = table,
    .port_queue = port_queue,
    .sockets = sockets,
    .sample = dt_summary_sample,
    .wait = dt_summary_wait,
    .lost = lost,
};
