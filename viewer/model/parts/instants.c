#include "model/parts/instants.h"

#include "model/entities/processes.h"

/* A copy of an event, with the contents of its reason or log line hidden if requested. */
static struct dt_recorded shown(struct world *world, const struct dt_recorded *event) {
    struct dt_recorded to = *event;

    if (event->probe == DT_log)
        to.fields.log.text = dt_world_text(world, event->fields.log.text);
    else if (event->probe == DT_node_down)
        to.fields.node_down.reason = dt_world_reason(world, event->fields.node_down.reason);
    return to;
}

static void instant(struct node *node, const struct dt_recorded *event, const char *process,
                    const char *other) {
    struct process *p = dt_process_of(node, process), *q = dt_process_anywhere(node, other);
    struct dt_recorded recorded = shown(node->world, event);
    struct dt_instant report = {.event = &recorded,
                                .node = &node->seen,
                                .process = p ? &p->seen : NULL,
                                .other = q ? &q->seen : NULL};

    DT_EMIT(node->world, instant, &report);
}

/* Events that are reported unchanged: probe, process, other process or port. */
#define INSTANTS(INSTANT)                                                                          \
    INSTANT(process_link, e->process_link.from, e->process_link.to)                                \
    INSTANT(port_link, e->port_link.from, e->port_link.to)                                         \
    INSTANT(process_register, e->process_register.pid, "")                                         \
    INSTANT(vm_long_gc, e->vm_long_gc.pid, "")                                                     \
    INSTANT(vm_long_schedule, e->vm_long_schedule.id, "")                                          \
    INSTANT(vm_large_heap, e->vm_large_heap.pid, "")                                               \
    INSTANT(vm_busy_port, e->vm_busy_port.pid, e->vm_busy_port.port)                               \
    INSTANT(vm_busy_dist_port, e->vm_busy_dist_port.pid, e->vm_busy_dist_port.port)                \
    INSTANT(vm_long_message_queue, e->vm_long_message_queue.pid, "")                               \
    INSTANT(node_up, "", "")                                                                       \
    INSTANT(node_down, "", "")                                                                     \
    INSTANT(withheld, "", "")                                                                      \
    INSTANT(log, e->log.pid, "")                                                                   \
    INSTANT(user_mark, e->user_mark.pid, "")                                                       \
    INSTANT(user_trace_s1, "", "")                                                                 \
    INSTANT(user_trace_i4s4, e->user_trace_i4s4.proc, "")                                          \
    INSTANT(user_trace_n, e->user_trace_n.proc, "")                                                \
    INSTANT(seq_trace_print, e->seq_trace_print.from, "")                                          \
    INSTANT(driver_output, e->driver_output.port, e->driver_output.pid)                            \
    INSTANT(driver_outputv, e->driver_outputv.port, e->driver_outputv.pid)                         \
    INSTANT(driver_init, "", "")                                                                   \
    INSTANT(driver_finish, "", "")

#define INSTANT(probe, process, other)                                                             \
    static void instant_##probe(struct node *node, const struct dt_recorded *event) {              \
        const union dt_event *e = &event->fields;                                                  \
                                                                                                   \
        (void)e;                                                                                   \
        instant(node, event, process, other);                                                      \
    }
INSTANTS(INSTANT)
#undef INSTANT

static void counter(struct node *node, const struct dt_recorded *event) {
    const struct dt_vm_counter *e = &event->fields.vm_counter;

    DT_EMIT(node->world, counter, &node->seen, e->name, e->unit, e->value, event->time);
}

/* A sample may come after the exit of its process. */
static void sample(struct node *node, const struct dt_recorded *event) {
    const struct dt_process_sample *e = &event->fields.process_sample;
    struct process *p = dt_process_of(node, e->pid);

    if (p && !p->has_exited)
        DT_EMIT(node->world, sample, &p->seen, e, event->time);
}

static void (*const handlers[DT_PROBES])(struct node *, const struct dt_recorded *) = {
    [DT_vm_counter] = counter,
    [DT_process_sample] = sample,
#define INSTANT(probe, process, other) [DT_##probe] = instant_##probe,
    INSTANTS(INSTANT)
#undef INSTANT
};

void dt_instants_event(struct node *node, const struct dt_recorded *event) {
    if (handlers[event->probe])
        handlers[event->probe](node, event);
}
