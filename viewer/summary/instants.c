#include "summary/instants.h"

#include <string.h>

#include "shared/probe_fields.h"
#include "summary/findings/limits.h"
#include "summary/summary.h"

enum { BYTES_PER_WORD = 8 };

static void on_log(struct dt_summary *summary, const struct dt_instant *i, struct dt_who *who) {
    static const char *const errors[] = {"error", "critical", "alert", "emergency"};
    const struct dt_log *log = &i->event->fields.log;
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    dt_summary_recorded(summary, node, DT_RECORDED_LOG);
    bool is_error = false;
    for (size_t n = 0; n < G_N_ELEMENTS(errors); n++)
        is_error |= strcmp(log->level, errors[n]) == 0;
    summary->log_errors += is_error;
    dt_list_add(&summary->log, (struct dt_listed){.who = who,
                                                  .node = node,
                                                  .time = i->event->time,
                                                  .is_error = is_error,
                                                  .word = g_strdup(log->level),
                                                  .text = g_strdup(log->text)});
}

/* A report of the system monitor about a process: the probe, the other end, and the amount. */
static void on_report(struct dt_summary *summary, const struct dt_instant *i, uint64_t amount) {
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    struct dt_who *who = dt_who_of(&summary->whos, i->process);
    struct dt_who *other = dt_who_of(&summary->whos, i->other);
    dt_summary_recorded(summary, node, DT_RECORDED_MONITOR);
    struct dt_pair *row = dt_pairs_row(&summary->whos, &summary->reports, who, other,
                                       dt_probe_names[i->event->probe]);
    row->count++;
    dt_quantiles_add(&row->took, amount);
}

static void on_long_gc(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_vm_long_gc *e = &i->event->fields.vm_long_gc;
    int64_t ns = (int64_t)MIN(e->duration, (uint64_t)INT32_MAX) * DT_UNIT_MS;
    uint64_t words = e->heap + e->old_heap + e->fragments;
    if (!words || ns <= dt_collection_ns(words))
        on_report(summary, i, (uint64_t)ns);
}

static void on_long_schedule(struct dt_summary *summary, const struct dt_instant *i) {
    uint64_t ms = MIN(i->event->fields.vm_long_schedule.duration, (uint64_t)INT32_MAX);
    on_report(summary, i, ms * DT_UNIT_MS);
}

static void on_large_heap(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_vm_large_heap *e = &i->event->fields.vm_large_heap;
    on_report(summary, i, (e->heap + e->old_heap + e->fragments) * BYTES_PER_WORD);
}

/* The event also fires when a long queue has become short. */
static void on_long_queue(struct dt_summary *summary, const struct dt_instant *i) {
    if (strcmp(i->event->fields.vm_long_message_queue.type, "long") == 0)
        on_report(summary, i, 0);
}

/* Hidden nodes are ignored: they are tools, which come and go. */
static void on_node_down(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_node_down *e = &i->event->fields.node_down;
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    dt_summary_recorded(summary, node, DT_RECORDED_MONITOR);
    if (strcmp(e->type, "hidden") != 0)
        dt_list_add(&summary->nodes_down, (struct dt_listed){.node = node,
                                                             .time = i->event->time,
                                                             .word = g_strdup(e->node),
                                                             .text = g_strdup(e->reason)});
}

static void on_withheld(struct dt_summary *summary, const struct dt_instant *i) {
    const struct dt_withheld *e = &i->event->fields.withheld;
    dt_list_add(&summary->withheld,
                (struct dt_listed){.node = dt_seen_node(&summary->whos.nodes, i->node),
                                   .time = i->event->time,
                                   .word = g_strdup(e->what),
                                   .text = g_strdup(e->why)});
}

static void on_output(struct dt_summary *summary, struct dt_process *process, uint64_t bytes) {
    struct dt_who *port = dt_summary_traced(summary, process);
    if (!port)
        return;
    dt_summary_recorded(summary, port->node, DT_RECORDED_OUTPUT);
    port->bytes_out += bytes;
}

static void on_general(struct dt_summary *summary, const struct dt_instant *i, struct dt_who *who) {
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    GString *text = g_string_new(NULL);
    dt_fields_text(text, i->event);
    dt_summary_recorded(summary, node, DT_RECORDED_OTHERS);
    dt_list_add(&summary->others,
                (struct dt_listed){.who = who,
                                   .node = node,
                                   .time = i->event->time,
                                   .word = g_strdup(dt_probe_names[i->event->probe]),
                                   .text = g_string_free(text, FALSE)});
}

void dt_summary_instant(void *s, const struct dt_instant *i) {
    struct dt_summary *summary = s;
    const union dt_event *e = &i->event->fields;
    dt_summary_at(summary, i->event->time);
    struct dt_who *who = dt_who_of(&summary->whos, i->process);
    if (i->is_general) {
        on_general(summary, i, who);
        return;
    }
    switch (i->event->probe) {
    case DT_vm_long_gc:
        on_long_gc(summary, i);
        break;
    case DT_vm_long_schedule:
        on_long_schedule(summary, i);
        break;
    case DT_vm_large_heap:
        on_large_heap(summary, i);
        break;
    case DT_vm_long_message_queue:
        on_long_queue(summary, i);
        break;
    case DT_vm_busy_port:
    case DT_vm_busy_dist_port:
        on_report(summary, i, 0);
        break;
    case DT_node_down:
        on_node_down(summary, i);
        break;
    case DT_withheld:
        on_withheld(summary, i);
        break;
    case DT_log:
        on_log(summary, i, who);
        break;
    case DT_user_mark:
    case DT_user_trace_s1:
    case DT_user_trace_i4s4:
    case DT_user_trace_n:
        dt_summary_recorded(summary, dt_seen_node(&summary->whos.nodes, i->node),
                            DT_RECORDED_MARKS);
        break;
    case DT_process_link:
    case DT_port_link:
        dt_summary_recorded(summary, dt_seen_node(&summary->whos.nodes, i->node),
                            DT_RECORDED_LINKS);
        break;
    case DT_driver_output:
        on_output(summary, i->process, e->driver_output.bytes);
        break;
    case DT_driver_outputv:
        on_output(summary, i->process, e->driver_outputv.bytes);
        break;
    default:
        break;
    }
}
