#include "model/parts/instants.h"

#include "model/entities/processes.h"
#include "shared/probe_fields.h"

/* -- Contents ------------------------------------------------------------------------ */

/* Hides the contents of the reason or log line. */
static void hide_known(struct node *node, struct dt_recorded *event) {
    union dt_event *e = &event->fields;

    if (event->probe == DT_log)
        e->log.text = dt_world_text(node->world, e->log.text);
    else if (event->probe == DT_node_down)
        e->node_down.reason =
            dt_world_reason(node->world, node->seen.is_elixir, e->node_down.reason);
}

/* Hides the contents of all terms and strings. The caller frees the list, which has the texts. */
static GPtrArray *hide_all(struct world *world, struct dt_recorded *event) {
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

    for (const struct dt_probe_field *f = dt_probe_fields(event->probe); f->name; f++) {
        const char **text;

        if (f->type != DT_FIELD_TERM && f->type != DT_FIELD_STRING)
            continue;
        text = dt_field_text(&event->fields, f);
        g_ptr_array_add(texts, g_strdup(dt_world_text(world, *text)));
        *text = g_ptr_array_index(texts, texts->len - 1);
    }
    return texts;
}

/* -- Instants ------------------------------------------------------------------------ */

/* An event is about the first identifier among its fields, and the second one is the other end, if
   these are processes or ports. The events of drivers name the owner before the port. */
static void find_ends(const struct dt_recorded *event, const char *ends[2]) {
    union dt_event fields = event->fields;
    bool is_of_port = event->probe == DT_driver_output || event->probe == DT_driver_outputv;
    unsigned found = 0;

    ends[0] = ends[1] = "";
    for (const struct dt_probe_field *f = dt_probe_fields(event->probe); f->name && found < 2; f++)
        if (f->type == DT_FIELD_IDENTIFIER)
            ends[found++ ^ is_of_port] = *dt_field_text(&fields, f);
}

static void emit(struct node *node, const struct dt_recorded *event, bool is_general) {
    const char *ends[2];
    struct process *p, *q;
    struct dt_recorded shown = *event;
    struct dt_instant instant = {.event = &shown, .node = &node->seen, .is_general = is_general};
    GPtrArray *texts = NULL;

    find_ends(event, ends);
    p = dt_process_of(node, ends[0]);
    q = dt_process_anywhere(node, ends[1]);
    instant.process = p ? &p->seen : NULL;
    instant.other = q ? &q->seen : NULL;
    if (is_general || event->probe == DT_telemetry_event)
        texts = hide_all(node->world, &shown);
    else
        hide_known(node, &shown);
    DT_EMIT(node->world, instant, &instant);
    g_clear_pointer(&texts, g_ptr_array_unref);
}

void dt_instants_event(struct node *node, const struct dt_recorded *event) {
    emit(node, event, false);
}

void dt_instants_general(struct node *node, const struct dt_recorded *event) {
    emit(node, event, true);
}

/* -- Counters and samples ------------------------------------------------------------ */

void dt_instants_counter(struct node *node, const struct dt_recorded *event) {
    const struct dt_vm_counter *e = &event->fields.vm_counter;

    DT_EMIT(node->world, counter, &node->seen, e->name, e->unit, e->value, event->time);
}

/* A sample may come after the exit of its process. */
void dt_instants_sample(struct node *node, const struct dt_recorded *event) {
    const struct dt_process_sample *e = &event->fields.process_sample;
    struct process *p = dt_process_of(node, e->pid);

    if (p && !p->has_exited)
        DT_EMIT(node->world, sample, &p->seen, e, event->time);
}

/* A process that has exited has no tables. */
void dt_instants_table(struct node *node, const struct dt_recorded *event) {
    const struct dt_table_sample *e = &event->fields.table_sample;
    struct process *owner = dt_process_of(node, e->pid);

    if (owner && !owner->has_exited)
        DT_EMIT(node->world, table, &owner->seen, e, event->time);
}

void dt_instants_port(struct node *node, const struct dt_recorded *event) {
    const struct dt_port_sample *e = &event->fields.port_sample;
    struct process *port = dt_process_of(node, e->port);

    if (port && !port->has_exited)
        DT_EMIT(node->world, port_queue, &port->seen, e, event->time);
}

void dt_instants_sockets(struct node *node, const struct dt_recorded *event) {
    const struct dt_socket_sample *e = &event->fields.socket_sample;
    struct process *owner = dt_process_of(node, e->pid);

    if (owner && !owner->has_exited)
        DT_EMIT(node->world, sockets, &owner->seen, e, event->time);
}

void dt_instants_wait(struct node *node, const struct dt_recorded *event) {
    const struct dt_process_wait *e = &event->fields.process_wait;
    struct process *p = dt_process_of(node, e->pid);
    struct process *target = dt_process_anywhere(node, e->target);

    if (p && !p->has_exited)
        DT_EMIT(node->world, wait, &p->seen, target ? &target->seen : NULL, e, event->time);
}
