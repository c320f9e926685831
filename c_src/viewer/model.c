#include <string.h>

#include "viewer/model_parts.h"

struct function *dt_function_of(struct dt_model *model, const char *text) {
    struct function *function = g_hash_table_lookup(model->functions, text);

    if (!function) {
        size_t size = strlen(text) + 1;

        function = g_malloc0(sizeof *function + size);
        memcpy(function->name, text, size);
        g_hash_table_insert(model->functions, function->name, function);
    }
    return function;
}

const char *dt_function(struct dt_model *model, const char *text) {
    return *text ? dt_function_of(model, text)->name : "";
}

/* -- Events ------------------------------------------------------------------------- */

typedef void handler(struct node *, const struct dt_recorded *);

static void instant(struct node *node, const struct dt_recorded *event, const char *process,
                    const char *other) {
    struct process *p = dt_process_of(node, process), *q = dt_process_anywhere(node, other);
    struct dt_instant told = {.event = event,
                              .node = &node->seen,
                              .process = p ? &p->seen : NULL,
                              .other = q ? &q->seen : NULL};

    DT_TELL(node->model, instant, &told);
}

static void link_too(struct node *node, const struct dt_recorded *event) {
    const union dt_event *e = &event->fields;

    dt_process_event(node, event);
    if (event->probe == DT_process_link)
        instant(node, event, e->process_link.from, e->process_link.to);
    else
        instant(node, event, e->port_link.from, e->port_link.to);
}

static void name_too(struct node *node, const struct dt_recorded *event) {
    dt_process_event(node, event);
    instant(node, event, event->fields.process_register.pid, "");
}

static void counter(struct node *node, const struct dt_recorded *event) {
    const struct dt_vm_counter *e = &event->fields.vm_counter;

    DT_TELL(node->model, counter, &node->seen, e->name, e->unit, e->value, event->time);
}

/* Events that are told as they are: whom they are about, and the other one. */
#define INSTANTS(INSTANT)                                                                          \
    INSTANT(vm_long_gc, e->vm_long_gc.pid, "")                                                     \
    INSTANT(vm_long_schedule, e->vm_long_schedule.id, "")                                          \
    INSTANT(vm_large_heap, e->vm_large_heap.pid, "")                                               \
    INSTANT(vm_busy_port, e->vm_busy_port.pid, e->vm_busy_port.port)                               \
    INSTANT(vm_busy_dist_port, e->vm_busy_dist_port.pid, e->vm_busy_dist_port.port)                \
    INSTANT(vm_long_message_queue, e->vm_long_message_queue.pid, "")                               \
    INSTANT(node_up, "", "")                                                                       \
    INSTANT(node_down, "", "")                                                                     \
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

static handler *const handlers[DT_PROBES] = {[DT_process_spawn] = dt_process_event,
                                             [DT_process_exit] = dt_process_event,
                                             [DT_process_register] = name_too,
                                             [DT_process_link] = link_too,
                                             [DT_process_identity] = dt_process_event,
                                             [DT_port_open] = dt_process_event,
                                             [DT_port_exit] = dt_process_event,
                                             [DT_port_link] = link_too,
                                             [DT_port_identity] = dt_process_event,
                                             [DT_node_identity] = dt_process_event,
                                             [DT_process_scheduled] = dt_scheduling_event,
                                             [DT_port_scheduled] = dt_scheduling_event,
                                             [DT_gc_minor_start] = dt_scheduling_event,
                                             [DT_gc_minor_end] = dt_scheduling_event,
                                             [DT_gc_major_start] = dt_scheduling_event,
                                             [DT_gc_major_end] = dt_scheduling_event,
                                             [DT_function_call] = dt_calls_event,
                                             [DT_function_return] = dt_calls_event,
                                             [DT_function_exception] = dt_calls_event,
                                             [DT_function_arguments] = dt_calls_event,
                                             [DT_function_value] = dt_calls_event,
                                             [DT_function_reason] = dt_calls_event,
                                             [DT_message_send] = dt_messages_event,
                                             [DT_message_receive] = dt_messages_event,
                                             [DT_message_delivery] = dt_messages_event,
                                             [DT_seq_trace_send] = dt_messages_event,
                                             [DT_seq_trace_receive] = dt_messages_event,
                                             [DT_user_span_start] = dt_spans_event,
                                             [DT_user_span_stop] = dt_spans_event,
                                             [DT_vm_counter] = counter,
#define INSTANT(probe, process, other) [DT_##probe] = instant_##probe,
                                             INSTANTS(INSTANT)
#undef INSTANT
};

void dt_model_event(struct dt_model *model, const struct dt_recorded *event) {
    handler *handle = handlers[event->probe];
    struct node *node;

    /* The clocks of two traces may differ a little. */
    if (event->time > model->now)
        model->now = event->time;
    model->events++;
    node = dt_node_of(model, event);
    node->seen.last = model->now;
    dt_release_late(node, model->now);
    dt_messages_late(node, model->now);
    if (handle)
        handle(node, event);
    dt_processes_forget(node);
}

void dt_model_skip(struct dt_model *model) {
    model->skipped++;
}

uint64_t dt_model_events(const struct dt_model *model) {
    return model->events;
}

uint64_t dt_model_skipped(const struct dt_model *model) {
    return model->skipped;
}

/* -- Begin and end ------------------------------------------------------------------ */

struct dt_model *dt_model_new(const struct dt_sink *sink, void *of_sink) {
    struct dt_model *model = g_new0(struct dt_model, 1);

    model->sink = sink;
    model->of_sink = of_sink;
    model->now = INT64_MIN + 1;
    dt_nodes_new(model);
    model->functions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    return model;
}

void dt_model_end(struct dt_model *model) {
    /* What is told of one node may begin or end a call of another one, whose messages may name its
       processes: so all nodes take each step together. */
    for (unsigned i = 0; i < model->nodes->len; i++)
        dt_release_late(model->nodes->pdata[i], INT64_MAX);
    for (unsigned i = 0; i < model->nodes->len; i++) {
        struct node *node = model->nodes->pdata[i];

        dt_server_calls_end(node);
        dt_spans_end(node);
        dt_messages_end(node);
    }
    for (unsigned i = 0; i < model->nodes->len; i++)
        dt_processes_end(model->nodes->pdata[i]);
    for (unsigned i = 0; i < model->nodes->len; i++)
        DT_TELL(model, node_gone, &((struct node *)model->nodes->pdata[i])->seen);
    model->is_ended = true;
}

void dt_model_free(struct dt_model *model) {
    static const struct dt_sink nobody;

    if (!model)
        return;
    if (!model->is_ended) {
        model->sink = &nobody;
        dt_model_end(model);
    }
    dt_nodes_free(model);
    g_hash_table_destroy(model->functions);
    g_free(model);
}
