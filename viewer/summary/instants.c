#include "summary/instants.h"

#include <string.h>

#include "summary/summary.h"

static void on_log(struct dt_summary *summary, const struct dt_instant *i, struct dt_who *who) {
    static const char *const errors[] = {"error", "critical", "alert", "emergency"};
    const struct dt_log *log = &i->event->fields.log;
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    dt_summary_told(summary, node, DT_TOLD_LOG);
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

static void on_monitor(struct dt_summary *summary, const struct dt_instant *i, const char *what) {
    struct dt_seen_node *node = dt_seen_node(&summary->whos.nodes, i->node);
    dt_summary_told(summary, node, DT_TOLD_MONITOR);
    dt_names_row(&summary->monitor, node, what)->count++;
}

static void on_output(struct dt_summary *summary, struct dt_process *process, uint64_t bytes) {
    struct dt_who *port = dt_summary_traced(summary, process);
    if (!port)
        return;
    dt_summary_told(summary, port->node, DT_TOLD_OUTPUT);
    port->bytes_out += bytes;
}

void dt_summary_instant(void *s, const struct dt_instant *i) {
    struct dt_summary *summary = s;
    const union dt_event *e = &i->event->fields;
    dt_summary_at(summary, i->event->time);
    struct dt_who *who = dt_who_of(&summary->whos, i->process);
    const char *what = monitored(i->event);
    if (what)
        on_monitor(summary, i, what);
    switch (i->event->probe) {
    case DT_log:
        on_log(summary, i, who);
        break;
    case DT_user_mark:
    case DT_user_trace_s1:
    case DT_user_trace_i4s4:
    case DT_user_trace_n:
        dt_summary_told(summary, dt_seen_node(&summary->whos.nodes, i->node), DT_TOLD_MARKS);
        break;
    case DT_process_link:
    case DT_port_link:
        dt_summary_told(summary, dt_seen_node(&summary->whos.nodes, i->node), DT_TOLD_LINKS);
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
