/* Instants in a summary: log lines, reports of the system monitor, marks, output. */
#include "summary/summary_events.h"

#include <string.h>

#include "shared/probe_fields.h"
#include "summary/findings/limits.h"

/* The report of a supervisor that gives up; its parent reports another reason. Elixir's
   DynamicSupervisor has `errorContext: shutdown, reason: ...`. */
static bool is_giving_up(const struct dt_instant *i) {
    const char *text = i->event->fields.log.text;

    return i->process && i->process->kind == DT_PROCESS && strstr(text, "ontext: shutdown") &&
           strstr(text, "eason: reached_max_restart_intensity");
}

static void on_log(struct dt_summary *summary, const struct dt_instant *i) {
    static const char *const errors[] = {"error", "critical", "alert", "emergency"};
    const struct dt_log *log = &i->event->fields.log;
    struct dt_seen_node *node = dt_seen_node(&summary->actors.nodes, i->node);

    dt_summary_recorded(summary, node, DT_RECORDED_LOG);
    bool is_error = false;
    for (size_t n = 0; n < G_N_ELEMENTS(errors); n++)
        is_error |= strcmp(log->level, errors[n]) == 0;
    summary->log_errors += is_error;
    if (is_error && is_giving_up(i))
        dt_list_add(&summary->gave_up,
                    (struct dt_listed){.actor = dt_actor_of(&summary->actors, i->process),
                                       .node = node,
                                       .time = i->event->time});
    dt_list_add(&summary->log,
                (struct dt_listed){.actor = dt_actor_of(&summary->actors, i->process),
                                   .node = node,
                                   .time = i->event->time,
                                   .is_error = is_error,
                                   .word = g_strdup(log->level),
                                   .text = g_strdup(log->text)});
}

/* A report of the system monitor about a process: the probe, the other end, and the amount. */
static struct dt_pair *on_report(struct dt_summary *summary, const struct dt_instant *i,
                                 uint64_t amount) {
    struct dt_seen_node *node = dt_seen_node(&summary->actors.nodes, i->node);
    struct dt_actor *actor = dt_actor_of(&summary->actors, i->process);
    struct dt_actor *other = dt_actor_of(&summary->actors, i->other);

    dt_summary_recorded(summary, node, DT_RECORDED_MONITOR);
    struct dt_pair *row =
        dt_pairs_row(&summary->reports, actor, other, dt_probe_names[i->event->probe]);
    row->count++;
    dt_quantiles_add(&row->took, amount);
    return row;
}

static void on_long_gc(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_vm_long_gc *e = &i->event->fields.vm_long_gc;
    int64_t ns = (int64_t)MIN(e->duration, (uint64_t)INT32_MAX) * DT_NS_PER_MS;
    uint64_t words = e->heap + e->old_heap + e->fragments;

    if (!words || ns <= dt_collection_ns(words))
        on_report(summary, i, (uint64_t)ns);
}

static void on_long_schedule(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_vm_long_schedule *e = &i->event->fields.vm_long_schedule;
    int64_t ns = (int64_t)MIN(e->duration, (uint64_t)INT32_MAX) * DT_NS_PER_MS;
    struct dt_pair *row = on_report(summary, i, (uint64_t)ns);

    /* The functions of the longest; those of a port are the reason of the run, and none. */
    if (ns < dt_quantiles_max(&row->took) || !*e->stopped)
        return;
    g_free(row->example);
    row->example = g_strdup_printf("%s to %s", e->started, e->stopped);
}

static void on_large_heap(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_vm_large_heap *e = &i->event->fields.vm_large_heap;

    on_report(summary, i, (e->heap + e->old_heap + e->fragments) * DT_BYTES_PER_WORD);
}

/* The event also fires when a long queue has become short. */
static void on_long_queue(struct dt_summary *summary, const struct dt_instant *i) {
    if (strcmp(i->event->fields.vm_long_message_queue.type, "long") == 0)
        on_report(summary, i, 0);
}

/* Hidden nodes are ignored: they are tools, which come and go. */
static void on_node_down(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_node_down *e = &i->event->fields.node_down;
    struct dt_seen_node *node = dt_seen_node(&summary->actors.nodes, i->node);

    dt_summary_recorded(summary, node, DT_RECORDED_MONITOR);
    if (strcmp(e->type, "hidden") != 0)
        dt_list_add(&summary->nodes_down, (struct dt_listed){.node = node,
                                                             .time = i->event->time,
                                                             .word = g_strdup(e->node),
                                                             .text = g_strdup(e->reason)});
}

static void on_withheld(struct dt_summary *summary, const struct dt_instant *i) {
    /* The model adds up the time (dyntrace_withheld.erl). */
    static const char *const usual[] = {"no consumer requests them",
                                        "tracing pauses to limit its cost",
                                        "their trace flags were not set", NULL};
    const struct dt_withheld *e = &i->event->fields.withheld;

    if (g_strv_contains(usual, e->why))
        return;
    dt_list_add(&summary->withheld,
                (struct dt_listed){.node = dt_seen_node(&summary->actors.nodes, i->node),
                                   .time = i->event->time,
                                   .word = g_strdup(e->what),
                                   .text = g_strdup(e->why)});
}

static void output(struct dt_summary *summary, struct dt_process *process, uint64_t bytes) {
    struct dt_actor *port = dt_summary_traced(summary, process);

    if (!port)
        return;
    dt_summary_recorded(summary, port->node, DT_RECORDED_OUTPUT);
    port->activity->bytes_out += bytes;
}

static void on_output(struct dt_summary *summary, const struct dt_instant *i) {
    output(summary, i->process, i->event->fields.driver_output.bytes);
}

static void on_outputv(struct dt_summary *summary, const struct dt_instant *i) {
    output(summary, i->process, i->event->fields.driver_outputv.bytes);
}

static void on_busy_port(struct dt_summary *summary, const struct dt_instant *i) {
    on_report(summary, i, 0);
}

static void on_mark(struct dt_summary *summary, const struct dt_instant *i) {
    dt_summary_recorded(summary, dt_seen_node(&summary->actors.nodes, i->node), DT_RECORDED_MARKS);
}

/* An event without a duration. */
static void on_telemetry(struct dt_summary *summary, const struct dt_instant *i) {
    dt_summary_recorded(summary, dt_seen_node(&summary->actors.nodes, i->node),
                        DT_RECORDED_TELEMETRY);
    dt_names_row(&summary->telemetry, NULL, i->event->fields.telemetry_event.name)->count++;
}

static void on_link(struct dt_summary *summary, const struct dt_instant *i) {
    dt_summary_recorded(summary, dt_seen_node(&summary->actors.nodes, i->node), DT_RECORDED_LINKS);
}

static void on_general(struct dt_summary *summary, const struct dt_instant *i) {
    struct dt_seen_node *node = dt_seen_node(&summary->actors.nodes, i->node);
    GString *text = g_string_new(NULL);

    dt_fields_text(text, i->event);
    dt_summary_recorded(summary, node, DT_RECORDED_OTHERS);
    dt_list_add(&summary->others,
                (struct dt_listed){.actor = dt_actor_of(&summary->actors, i->process),
                                   .node = node,
                                   .time = i->event->time,
                                   .word = g_strdup(dt_probe_names[i->event->probe]),
                                   .text = g_string_free(text, false)});
}

static void (*const handlers[DT_PROBES])(struct dt_summary *, const struct dt_instant *) = {
    [DT_vm_long_gc] = on_long_gc,
    [DT_vm_long_schedule] = on_long_schedule,
    [DT_vm_large_heap] = on_large_heap,
    [DT_vm_long_message_queue] = on_long_queue,
    [DT_vm_busy_port] = on_busy_port,
    [DT_vm_busy_dist_port] = on_busy_port,
    [DT_node_down] = on_node_down,
    [DT_withheld] = on_withheld,
    [DT_log] = on_log,
    [DT_user_mark] = on_mark,
    [DT_user_trace_s1] = on_mark,
    [DT_user_trace_i4s4] = on_mark,
    [DT_user_trace_n] = on_mark,
    [DT_telemetry_event] = on_telemetry,
    [DT_process_link] = on_link,
    [DT_port_link] = on_link,
    [DT_driver_output] = on_output,
    [DT_driver_outputv] = on_outputv,
};

void dt_summary_instant(void *data, const struct dt_instant *i) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, i->event->time);
    dt_actor_of(&summary->actors, i->process);
    if (i->is_general)
        on_general(summary, i);
    else if (handlers[i->event->probe])
        handlers[i->event->probe](summary, i);
}
