#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for strverscmp */
#include <string.h>

#include "viewer/report_parts.h"
#include "viewer/report_shape.h"
#include "viewer/texts.h"

const char *const dt_told_words[] = {
#define KIND(name, word) word,
    DT_TOLD_KINDS(KIND)
#undef KIND
};

static void free_node(gpointer of) {
    struct dt_seen_node *node = of;
    if (!node)
        return;
    g_free(node->name);
    g_free(node->hostname);
    g_free(node->otp);
    g_free(node);
}

static void drop_who(gpointer who) {
    dt_who_drop(who);
}

static void clear_lost(gpointer lost) {
    g_free(((struct dt_seen_lost *)lost)->stream);
}

static void clear_finding(gpointer of) {
    struct dt_finding *finding = of;
    g_free(finding->text);
    dt_who_drop(finding->who);
}

struct dt_report *dt_report_new(void) {
    struct dt_report *r = g_new0(struct dt_report, 1);
    r->nodes = g_ptr_array_new_with_free_func(free_node);
    r->alive = g_hash_table_new_full(NULL, NULL, drop_who, NULL);
    r->sums = g_hash_table_new_full(dt_who_sum_hash, dt_who_sum_equal, drop_who, NULL);
    r->begin = r->end = DT_NO_VALUE;
    r->lost = g_array_new(FALSE, FALSE, sizeof(struct dt_seen_lost));
    g_array_set_clear_func(r->lost, clear_lost);
    r->findings = g_array_new(FALSE, FALSE, sizeof(struct dt_finding));
    g_array_set_clear_func(r->findings, clear_finding);
    r->processes.whos = g_ptr_array_new();
    r->ports.whos = g_ptr_array_new();
    dt_pairs_init(&r->talks, DT_TALKS);
    dt_pairs_init(&r->server_calls, DT_SERVER_CALLS);
    dt_pairs_init(&r->dead, DT_DEAD);
    dt_names_init(&r->calls);
    dt_names_init(&r->spans);
    dt_names_init(&r->counters);
    dt_names_init(&r->monitor);
    dt_requests_init(&r->requests);
    dt_list_init(&r->crashes, false);
    dt_list_init(&r->log, false);
    dt_list_init(&r->waits, true);
    dt_list_init(&r->collections, true);
    return r;
}

void dt_report_free(struct dt_report *r) {
    if (!r)
        return;
    dt_pairs_free(&r->talks);
    dt_pairs_free(&r->server_calls);
    dt_pairs_free(&r->dead);
    dt_names_free(&r->calls);
    dt_names_free(&r->spans);
    dt_names_free(&r->counters);
    dt_names_free(&r->monitor);
    dt_requests_free(&r->requests);
    dt_list_free(&r->crashes);
    dt_list_free(&r->log);
    dt_list_free(&r->waits);
    dt_list_free(&r->collections);
    g_array_free(r->findings, TRUE);
    g_array_free(r->lost, TRUE);
    dt_kept_free(&r->processes);
    dt_kept_free(&r->ports);
    g_hash_table_destroy(r->alive);
    g_hash_table_destroy(r->sums);
    g_ptr_array_free(r->nodes, TRUE);
    g_free(r);
}

static void told(struct dt_report *r, struct dt_seen_node *node, enum dt_told kind) {
    r->told |= 1U << kind;
    if (node)
        node->told |= 1U << kind;
}

static void at(struct dt_report *r, int64_t time) {
    if (time == DT_NO_VALUE)
        return;
    if (r->begin == DT_NO_VALUE)
        r->begin = time;
    r->end = MAX(r->end, time);
}

static struct dt_who *traced(struct dt_report *r, struct dt_process *process) {
    struct dt_who *who = dt_who_of(r, process);
    if (who)
        who->is_traced = true;
    return who;
}

/* -- Nodes and processes ---------------------------------------------------------------- */

void dt_report_node(void *s, struct dt_node *node) {
    struct dt_seen_node *seen = dt_seen(s, node);
    dt_set(&seen->name, node->name);
    dt_set(&seen->hostname, node->hostname);
    dt_set(&seen->otp, node->otp);
    seen->clock = node->clock;
    seen->os_pid = node->os_pid;
    seen->first = node->first;
    seen->last = node->last;
    at(s, node->first);
    at(s, node->last);
}

void dt_report_process(void *s, struct dt_process *process, int64_t time) {
    struct dt_report *r = s;
    at(r, time);
    struct dt_who *who = dt_who_of(r, process);
    dt_who_learn_parent(r, who);
    if (process->kind == DT_PORT)
        told(r, who->node, DT_TOLD_PORTS);
    if (process->kind != DT_PROCESS)
        return;
    r->processes_seen++;
    if (who->node)
        who->node->processes++;
    if (process->began != DT_NO_VALUE)
        told(r, who->node, DT_TOLD_SPAWNS);
}

void dt_report_process_named(void *s, struct dt_process *process, int64_t time) {
    at(s, time);
    dt_who_learn_parent(s, dt_who_of(s, process));
}

void dt_report_process_exited(void *s, const struct dt_exit *e) {
    struct dt_report *r = s;
    at(r, e->time);
    struct dt_who *who = traced(r, e->process);
    told(r, who->node, DT_TOLD_EXITS);
    r->exits++;
    if (!e->is_crash)
        return;
    GPtrArray *linked = g_ptr_array_new_with_free_func(drop_who);
    for (unsigned i = 0; i < e->links; i++)
        g_ptr_array_add(linked, dt_who_keep(dt_who_of(r, e->linked[i])));
    dt_list_add(&r->crashes, (struct dt_listed){.who = who,
                                                .node = who->node,
                                                .time = e->time,
                                                .text = g_strdup(e->reason),
                                                .linked = linked});
}

void dt_report_process_gone(void *s, struct dt_process *process) {
    dt_who_gone(s, process);
}

/* -- Intervals -------------------------------------------------------------------------- */

static void on_runnable(struct dt_report *r, struct dt_who *who, const struct dt_interval *i) {
    int64_t ns = i->end - i->begin;
    who->runnable += ns;
    dt_load_time(r, who->node, DT_LOAD_RUNNABLE, i->begin, i->end);
    if (ns > who->longest_wait) {
        who->longest_wait = ns;
        who->longest_wait_at = i->begin;
    }
    if (dt_list_wants(&r->waits, ns))
        dt_list_add(&r->waits, (struct dt_listed){.who = who,
                                                  .node = who->node,
                                                  .time = i->begin,
                                                  .ns = ns,
                                                  .text = g_strdup(i->out),
                                                  .inferred = i->inferred});
}

static void on_collecting(struct dt_report *r, struct dt_who *who, const struct dt_interval *i) {
    int64_t ns = i->end - i->begin;
    told(r, who->node, DT_TOLD_COLLECTIONS);
    who->collecting += ns;
    who->collections++;
    dt_load_time(r, who->node, DT_LOAD_COLLECTING, i->begin, i->end);
    if (i->is_open || !dt_list_wants(&r->collections, ns))
        return;
    dt_list_add(&r->collections, (struct dt_listed){.who = who,
                                                    .node = who->node,
                                                    .time = i->begin,
                                                    .ns = ns,
                                                    .is_major = i->is_major,
                                                    .inferred = i->inferred,
                                                    .reclaimed = i->reclaimed,
                                                    .heap = i->heap + i->old_heap});
}

void dt_report_interval(void *s, const struct dt_interval *i) {
    struct dt_report *r = s;
    at(r, i->end);
    struct dt_who *who = dt_who_of(r, i->process);
    switch (i->state) {
    case DT_STATE_RUNNING:
        told(r, who->node, DT_TOLD_SCHEDULING);
        who->is_traced = who->ran = true;
        who->run += i->end - i->begin;
        if (who->kind == DT_PROCESS)
            dt_load_time(r, who->node, DT_LOAD_RUN, i->begin, i->end);
        break;
    case DT_STATE_RUNNABLE:
        who->is_traced = who->ran = true;
        if (who->kind == DT_PROCESS)
            on_runnable(r, who, i);
        break;
    case DT_STATE_WAITING:
        who->is_traced = who->ran = true;
        who->waiting += i->end - i->begin;
        break;
    case DT_STATE_COLLECTING:
        who->is_traced = true;
        on_collecting(r, who, i);
        break;
    default:
        break;
    }
}

void dt_report_mailbox(void *s, struct dt_process *process, int64_t time) {
    (void)time;
    struct dt_who *who = dt_who_of(s, process);
    who->mailbox_max = MAX(who->mailbox_max, process->mailbox);
}

/* -- Calls ------------------------------------------------------------------------------ */

void dt_report_call_begin(void *s, struct dt_frame *frame) {
    struct dt_report *r = s;
    struct dt_who *who = traced(r, frame->process);
    told(r, who->node, DT_TOLD_CALLS);
    if (!frame->inferred) {
        at(r, frame->begin);
        dt_load_count(r, who->node, DT_LOAD_CALLS, frame->begin);
    }
    if (!who->stack)
        who->stack = g_array_new(FALSE, FALSE, sizeof(struct dt_called));
    struct dt_called called = {frame->number, dt_names_row(&r->calls, who->node, frame->entry)};
    g_array_append_val(who->stack, called);
}

/* Takes a call off the stack. */
static struct dt_named *leave(struct dt_report *r, struct dt_who *who, const struct dt_frame *frame,
                              bool *is_outermost) {
    GArray *stack = who->stack;
    guint n = stack ? stack->len : 0;
    while (n > 0 && g_array_index(stack, struct dt_called, n - 1).number != frame->number)
        n--;
    *is_outermost = true;
    if (n == 0)
        return dt_names_row(&r->calls, who->node, frame->entry);
    struct dt_named *row = g_array_index(stack, struct dt_called, n - 1).row;
    g_array_set_size(stack, n - 1);
    for (guint i = 0; i + 1 < n; i++)
        if (g_array_index(stack, struct dt_called, i).row == row)
            *is_outermost = false;
    return row;
}

void dt_report_call_end(void *s, struct dt_frame *frame) {
    struct dt_report *r = s;
    struct dt_who *who = dt_who_of(r, frame->process);
    bool is_outermost;
    struct dt_named *row = leave(r, who, frame, &is_outermost);
    row->count++;
    if (frame->left == DT_LEFT_EXCEPTION)
        row->failed++;
    bool is_measured =
        !frame->inferred && (frame->left == DT_LEFT_RETURN || frame->left == DT_LEFT_EXCEPTION ||
                             (frame->left == DT_LEFT_TAIL_CALL && frame->has_return));
    if (!is_measured) {
        row->inferred++;
        return;
    }
    at(r, frame->end);
    told(r, who->node, DT_TOLD_RETURNS);
    row->measured++;
    if (is_outermost)
        row->total += frame->end - frame->begin;
    if (frame->own > 0)
        row->own += frame->own;
    dt_quantiles_add(&row->took, (uint64_t)MAX(frame->end - frame->begin, 0));
}

/* -- Messages --------------------------------------------------------------------------- */

void dt_report_sent(void *s, struct dt_message *m) {
    struct dt_report *r = s;
    at(r, m->sent);
    r->sent++;
    struct dt_who *from = traced(r, m->from);
    struct dt_seen_node *node = from ? from->node : NULL;
    told(r, node, DT_TOLD_SENDS);
    if (from)
        from->sent++;
    dt_load_count(r, node, DT_LOAD_SENT, m->sent);
}

void dt_report_delivered(void *s, struct dt_message *m) {
    struct dt_report *r = s;
    at(r, m->delivered);
    r->received++;
    struct dt_who *to = traced(r, m->to);
    told(r, to ? to->node : NULL, DT_TOLD_DELIVERIES);
    if (to)
        to->received++;
}

static char *example_of(const char *text) {
    return dt_cut(text, DT_EXAMPLE, "...");
}

/* The sender, or what is known of it. */
static struct dt_who *sender_of(struct dt_report *r, const struct dt_message *m,
                                const struct dt_who *to) {
    if (m->from)
        return dt_who_of(r, m->from);
    if (!*m->timer)
        return NULL;
    if (strcmp(m->timer, "clock_service") == 0)
        return dt_who_sum(r, to ? to->node : NULL, "timers");
    return dt_who_sum(r, to ? to->node : NULL, m->timer);
}

/* Aliases are new for each call. */
static const char *receiver_of(const char *to_text) {
    return g_str_has_prefix(to_text, "#Ref") ? "unknown aliases" : to_text;
}

static void on_dead(struct dt_report *r, const struct dt_message *m, struct dt_who *from,
                    struct dt_who *to) {
    r->dead_messages++;
    struct dt_pair *row = dt_pairs_row(r, &r->dead, from, to, to ? NULL : receiver_of(m->to_text));
    row->count++;
    if (!row->example)
        row->example = example_of(m->text);
}

void dt_report_message_gone(void *s, struct dt_message *m) {
    struct dt_report *r = s;
    struct dt_who *to = m->to ? dt_who_of(r, m->to) : NULL;
    struct dt_who *from = sender_of(r, m, to);
    if (m->is_dead) {
        on_dead(r, m, from, to);
        return;
    }
    if (!to && *m->to_text)
        to = dt_who_sum(r, from ? from->node : NULL, receiver_of(m->to_text));
    struct dt_pair *row = dt_pairs_row(r, &r->talks, from, to, NULL);
    row->count++;
    row->inferred += dt_is_inferred(m->matched);
    dt_requests_add(r, m);
}

static void took(struct dt_pair *row, const struct dt_server_call *c) {
    dt_quantiles_add(&row->took, (uint64_t)MAX(c->ended - c->began, 0));
    if (c->taken != DT_NO_VALUE) {
        dt_quantiles_add(&row->queued, (uint64_t)MAX(c->taken - c->began, 0));
        dt_quantiles_add(&row->worked, (uint64_t)MAX(c->ended - c->taken, 0));
    }
}

void dt_report_server_call(void *s, const struct dt_server_call *c) {
    struct dt_report *r = s;
    struct dt_who *caller = dt_who_of(r, c->caller), *server = dt_who_of(r, c->server);
    told(r, caller->node, DT_TOLD_SERVER_CALLS);
    char shape[DT_SHAPE];
    dt_report_shape(c->request, shape, sizeof shape);
    bool is_named = *c->caller->name;
    struct dt_who *from = is_named ? caller : dt_who_kind(r, caller);
    struct dt_pair *row = dt_pairs_row(r, &r->server_calls, from, server, shape);
    if (row->count == 0) {
        row->only = dt_who_keep(caller);
        row->example = example_of(c->request);
    } else if (row->only && row->only != caller) {
        dt_who_drop(row->only);
        row->only = NULL;
    }
    row->count++;
    row->timeouts += c->outcome == DT_OUTCOME_TIMEOUT;
    row->downs += c->outcome == DT_OUTCOME_DOWN;
    if (c->outcome == DT_OUTCOME_REPLY)
        took(row, c);
}

/* -- Spans, counters, instants ---------------------------------------------------------- */

void dt_report_span(void *s, const struct dt_span *span) {
    struct dt_report *r = s;
    at(r, span->end);
    struct dt_who *who = traced(r, span->process);
    told(r, who ? who->node : NULL, DT_TOLD_SPANS);
    struct dt_named *row = dt_names_row(&r->spans, NULL, span->name);
    row->count++;
    if (span->is_open)
        return;
    row->failed += strcmp(span->outcome, "ok") != 0;
    row->total += span->end - span->begin;
    dt_quantiles_add(&row->took, (uint64_t)MAX(span->end - span->begin, 0));
}

void dt_report_counter(void *s, struct dt_node *node, const char *name, const char *unit,
                       int64_t value, int64_t time) {
    struct dt_report *r = s;
    at(r, time);
    struct dt_seen_node *seen = dt_seen(r, node);
    told(r, seen, DT_TOLD_COUNTERS);
    struct dt_named *row = dt_names_row(&r->counters, seen, name);
    dt_set(&row->unit, unit);
    row->min = row->count ? MIN(row->min, value) : value;
    row->max = row->count ? MAX(row->max, value) : value;
    row->last = value;
    row->count++;
}

static void on_log(struct dt_report *r, const struct dt_instant *i, struct dt_who *who) {
    static const char *const errors[] = {"error", "critical", "alert", "emergency"};
    const struct dt_log *log = &i->event->fields.log;
    struct dt_seen_node *node = dt_seen(r, i->node);
    told(r, node, DT_TOLD_LOG);
    bool is_error = false;
    for (size_t n = 0; n < G_N_ELEMENTS(errors); n++)
        is_error |= strcmp(log->level, errors[n]) == 0;
    r->log_errors += is_error;
    dt_list_add(&r->log, (struct dt_listed){.who = who,
                                            .node = node,
                                            .time = i->event->time,
                                            .is_error = is_error,
                                            .word = g_strdup(log->level),
                                            .text = g_strdup(log->text)});
}

/* What the VM tells of itself; NULL: another event. */
static const char *monitored(const struct dt_recorded *event) {
    static const char *const words[DT_PROBES] = {
        [DT_vm_long_gc] = "long garbage collections",
        [DT_vm_long_schedule] = "long schedules",
        [DT_vm_large_heap] = "large heaps",
        [DT_vm_busy_port] = "suspensions by a busy port",
        [DT_vm_busy_dist_port] = "suspensions by a busy connection to another node",
        [DT_vm_long_message_queue] = "long message queues",
        [DT_node_down] = "nodes that went away",
    };
    /* The end of a long queue is an event, too. */
    if (event->probe == DT_vm_long_message_queue &&
        strcmp(event->fields.vm_long_message_queue.type, "long") != 0)
        return NULL;
    return words[event->probe];
}

static void on_monitor(struct dt_report *r, const struct dt_instant *i, const char *what) {
    struct dt_seen_node *node = dt_seen(r, i->node);
    told(r, node, DT_TOLD_MONITOR);
    dt_names_row(&r->monitor, node, what)->count++;
}

static void on_output(struct dt_report *r, struct dt_process *process, uint64_t bytes) {
    struct dt_who *port = traced(r, process);
    if (!port)
        return;
    told(r, port->node, DT_TOLD_OUTPUT);
    port->bytes_out += bytes;
}

void dt_report_instant(void *s, const struct dt_instant *i) {
    struct dt_report *r = s;
    const union dt_event *e = &i->event->fields;
    at(r, i->event->time);
    struct dt_who *who = dt_who_of(r, i->process);
    const char *what = monitored(i->event);
    if (what)
        on_monitor(r, i, what);
    switch (i->event->probe) {
    case DT_log:
        on_log(r, i, who);
        break;
    case DT_user_mark:
    case DT_user_trace_s1:
    case DT_user_trace_i4s4:
    case DT_user_trace_n:
        told(r, dt_seen(r, i->node), DT_TOLD_MARKS);
        break;
    case DT_process_link:
    case DT_port_link:
        told(r, dt_seen(r, i->node), DT_TOLD_LINKS);
        break;
    case DT_driver_output:
        on_output(r, i->process, e->driver_output.bytes);
        break;
    case DT_driver_outputv:
        on_output(r, i->process, e->driver_outputv.bytes);
        break;
    default:
        break;
    }
}

void dt_report_lost(void *s, const struct dt_lost *lost) {
    struct dt_report *r = s;
    r->lost_rows++;
    r->lost_unknown |= lost->count == 0;
    r->lost_events += lost->count;
    if (r->lost->len >= DT_LISTED)
        return;
    struct dt_seen_lost seen = {.node = dt_seen(r, lost->node),
                                .stream = g_strdup(lost->stream),
                                .begin = lost->begin,
                                .end = lost->end,
                                .count = lost->count};
    g_array_append_val(r->lost, seen);
}

/* -- The end ---------------------------------------------------------------------------- */

void dt_report_finish(struct dt_report *r, const struct dt_model *model) {
    r->events = dt_model_events(model);
    r->skipped = dt_model_skipped(model);
    dt_kept_cut(&r->processes);
    dt_kept_cut(&r->ports);
    dt_list_sort(&r->crashes);
    dt_list_sort(&r->log);
    dt_list_sort(&r->waits);
    dt_list_sort(&r->collections);
    dt_report_find(r);
}

const struct dt_sink dt_report_collects = {DT_REPORT_COLLECTS};

/* -- Tables in the order in which they are shown ---------------------------------------- */

static gint by_total(gconstpointer a, gconstpointer b) {
    const struct dt_named *x = *(struct dt_named *const *)a, *y = *(struct dt_named *const *)b;
    int by = dt_compare(y->total, x->total);
    by = by ? by : dt_compare((int64_t)y->count, (int64_t)x->count);
    return by ? by : strcmp(x->name, y->name);
}

static gint by_name(gconstpointer a, gconstpointer b) {
    const struct dt_named *x = *(struct dt_named *const *)a, *y = *(struct dt_named *const *)b;
    /* run_queue_2 comes before run_queue_10. */
    int by = strverscmp(x->name, y->name);
    return by || !x->node || !y->node ? by : dt_compare(x->node->number, y->node->number);
}

/* Those that timed out always come first: they have no quantile. */
static gint by_p99(gconstpointer a, gconstpointer b) {
    const struct dt_pair *x = *(struct dt_pair *const *)a, *y = *(struct dt_pair *const *)b;
    int by = dt_compare((int64_t)y->timeouts, (int64_t)x->timeouts);
    return by ? by : dt_compare(dt_quantile(&y->took, 0.99), dt_quantile(&x->took, 0.99));
}

GPtrArray *dt_report_nodes(const struct dt_report *r) {
    GPtrArray *nodes = g_ptr_array_new();
    for (guint i = 0; i < r->nodes->len; i++)
        if (g_ptr_array_index(r->nodes, i))
            g_ptr_array_add(nodes, g_ptr_array_index(r->nodes, i));
    return nodes;
}

GPtrArray *dt_report_server_calls(const struct dt_report *r) {
    GPtrArray *rows = dt_pairs_by_count(&r->server_calls);
    g_ptr_array_sort(rows, by_p99);
    return rows;
}

#define ROWS(table, rows)                                                                          \
    GPtrArray *dt_report_##table(const struct dt_report *r) {                                      \
        return rows;                                                                               \
    }
ROWS(lost_rows, dt_pointers(r->lost))
ROWS(findings, dt_pointers(r->findings))
ROWS(processes, dt_kept_copy(&r->processes))
ROWS(ports, dt_kept_copy(&r->ports))
ROWS(calls, dt_names_sorted(&r->calls, by_total))
ROWS(spans, dt_names_sorted(&r->spans, by_total))
ROWS(counters, dt_names_sorted(&r->counters, by_name))
ROWS(talks, dt_pairs_by_count(&r->talks))
ROWS(dead, dt_pairs_by_count(&r->dead))
ROWS(crashes, dt_pointers(r->crashes.rows))
ROWS(waits, dt_pointers(r->waits.rows))
ROWS(collections, dt_pointers(r->collections.rows))
ROWS(log, dt_pointers(r->log.rows))
