/*
 * The driver: dispatches events to entities and parts, and defines the subscribers of each hook.
 *
 *     event -> entity or part -> hooks -> other parts
 */
#include "model/model.h"

#include <string.h>

#include "model/entities/life_cycle.h"
#include "model/entities/registered_names.h"
#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "model/entities/schedulers.h"
#include "model/parts/function_calls.h"
#include "model/parts/held_events.h"
#include "model/parts/instants.h"
#include "model/parts/messages/deliveries.h"
#include "model/parts/messages/early_deliveries.h"
#include "model/parts/messages/in_flight.h"
#include "model/parts/messages/sends.h"
#include "model/parts/messages/tokens.h"
#include "model/parts/scheduling.h"
#include "model/parts/server_calls/server_calls.h"
#include "model/parts/spans.h"
#include "model/parts/tasks.h"
#include "model/parts/telemetry.h"
#include "reading/reader.h"

struct dt_model {
    struct world *world;
    uint64_t events, skipped;
    struct dt_command_notes notes;
    bool is_ended;
};

/* -- Hooks -------------------------------------------------------------------------- */

/* Messages in flight may have been delivered during the loss. */
/* Their second events may be lost. The calls that held returns end began before the loss. */
static void held_lost(struct node *node, int64_t begin) {
    (void)begin;
    dt_held_end(node);
}

static void messages_lost(struct node *node, int64_t begin) {
    (void)begin;
    dt_early_end(node);
    dt_in_flight_drop_all(node);
}

/* The order of each list is the order in which sinks receive events. When a process exits, its run
   ends first, then its calls, its spans, and server calls with it, so that they nest in the output.
   A held event may be the return of a call or a message to a server, so it is released before these
   end. */
static const struct dt_hooks hooks = {
    /* Entities first, because the parts depend on them. */
    .node_new = {dt_schedulers_new, dt_peers_new, dt_registered_new, dt_processes_new, dt_held_new,
                 dt_scheduling_new, dt_calls_new, dt_spans_new, dt_server_calls_new,
                 dt_in_flight_new, dt_early_new, dt_tokens_new, dt_sends_new, dt_deliveries_new},
    .node_free = {dt_deliveries_free, dt_sends_free, dt_tokens_free, dt_early_free,
                  dt_in_flight_free, dt_server_calls_free, dt_spans_free, dt_calls_free,
                  dt_scheduling_free, dt_held_free, dt_processes_free, dt_registered_free,
                  dt_peers_free, dt_schedulers_free},
    .lost = {held_lost, dt_names_lost, dt_scheduling_lost, dt_calls_lost, dt_server_calls_lost,
             messages_lost},
    .late = {dt_held_late, dt_sends_late, dt_early_late},
    .ending = {dt_held_end},
    .end = {dt_server_calls_end, dt_spans_end, dt_early_end, dt_in_flight_drop_all},

    .process_new = {dt_scheduling_process},
    .process_free = {dt_scheduling_leave},
    .leaving = {dt_release},
    .exited = {dt_scheduling_exited, dt_calls_exited, dt_spans_exited, dt_server_calls_exited},
    /* Server calls stay: late events of their processes may follow. */
    .cut = {dt_scheduling_cut, dt_calls_cut, dt_spans_cut},

    .scheduled = {dt_deliveries_infer, dt_server_calls_scheduled, dt_calls_scheduled},
    .arrived = {dt_scheduling_arrived},
    .timed_out = {dt_server_calls_timed_out},
    .sent = {dt_scheduling_sent, dt_server_calls_sent, dt_tasks_sent},
    .delivered = {dt_server_calls_delivered},
};

/* -- Events ------------------------------------------------------------------------- */

typedef void handler(struct node *, const struct dt_recorded *);

/* While tracing is paused to stay within the budget, or no consumer requires it, there are no
   events of trace flags. Nor are there any until the flags are set; `earlier_events` reports that
   they are (dyntrace_withheld.erl). */
static void withheld(struct node *node, const struct dt_recorded *event) {
    const char *what = event->fields.withheld.what;

    if (strcmp(what, "all_events") == 0)
        dt_node_untraced(node);
    else if (strcmp(what, "earlier_events") == 0)
        dt_node_traced(node);
    dt_instants_event(node, event);
}

static void shown_process_event(struct node *node, const struct dt_recorded *event) {
    dt_process_event(node, event);
    dt_instants_event(node, event);
}

static void sample(struct node *node, const struct dt_recorded *event) {
    dt_scheduling_event(node, event);
    dt_instants_sample(node, event);
}

/* Events that no output shows. */
static void ignore(struct node *node, const struct dt_recorded *event) {
    (void)node, (void)event;
}

/* The handler of an event, and its source: a pause of the budget affects only events of the VM's
   tracer. A probe without a row has no meaning of its own: its events are general instants. */
enum reporter { VM, OTHERS };

static const struct handling {
    handler *handle;
    enum reporter reporter;
} handlings[DT_PROBES] = {
    [DT_process_spawn] = {dt_process_event, VM},
    [DT_process_exit] = {dt_process_event, VM},
    [DT_process_register] = {shown_process_event, VM},
    [DT_process_link] = {shown_process_event, VM},
    [DT_process_identity] = {dt_process_event, OTHERS},
    [DT_process_named] = {dt_process_event, OTHERS},
    [DT_port_open] = {dt_process_event, VM},
    [DT_port_exit] = {dt_process_event, VM},
    [DT_port_link] = {shown_process_event, VM},
    [DT_port_identity] = {dt_process_event, OTHERS},
    [DT_node_identity] = {dt_process_event, OTHERS},
    [DT_process_scheduled] = {dt_scheduling_event, VM},
    [DT_port_scheduled] = {dt_scheduling_event, VM},
    [DT_process_sample] = {sample, OTHERS},
    [DT_process_wait] = {dt_instants_wait, OTHERS},
    [DT_gc_minor_start] = {dt_scheduling_event, VM},
    [DT_gc_minor_end] = {dt_scheduling_event, VM},
    [DT_gc_major_start] = {dt_scheduling_event, VM},
    [DT_gc_major_end] = {dt_scheduling_event, VM},
    [DT_function_call] = {dt_calls_event, VM},
    [DT_function_return] = {dt_calls_event, VM},
    [DT_function_exception] = {dt_calls_event, VM},
    [DT_function_arguments] = {dt_calls_event, VM},
    [DT_function_value] = {dt_calls_event, VM},
    [DT_function_reason] = {dt_calls_event, VM},
    [DT_message_send] = {dt_message_send, VM},
    [DT_message_receive] = {dt_message_receive, VM},
    [DT_message_delivery] = {dt_message_delivery, VM},
    [DT_seq_trace_send] = {dt_seq_trace_send, OTHERS},
    [DT_seq_trace_receive] = {dt_seq_trace_receive, OTHERS},
    [DT_user_span_start] = {dt_spans_event, OTHERS},
    [DT_user_span_stop] = {dt_spans_event, OTHERS},
    [DT_telemetry_event] = {dt_telemetry_event, VM},
    [DT_withheld] = {withheld, OTHERS},
    [DT_cost_limit] = {ignore, OTHERS},
    [DT_vm_counter] = {dt_instants_counter, OTHERS},
    [DT_table_sample] = {dt_instants_table, OTHERS},
    [DT_port_sample] = {dt_instants_port, OTHERS},
    [DT_socket_sample] = {dt_instants_sockets, OTHERS},
    [DT_vm_long_gc] = {dt_instants_event, OTHERS},
    [DT_vm_long_schedule] = {dt_instants_event, OTHERS},
    [DT_vm_large_heap] = {dt_instants_event, OTHERS},
    [DT_vm_busy_port] = {dt_instants_event, OTHERS},
    [DT_vm_busy_dist_port] = {dt_instants_event, OTHERS},
    [DT_vm_long_message_queue] = {dt_instants_event, OTHERS},
    [DT_node_up] = {dt_instants_event, OTHERS},
    [DT_node_down] = {dt_instants_event, OTHERS},
    [DT_log] = {dt_instants_event, OTHERS},
    [DT_crash_report] = {dt_process_event, OTHERS},
    [DT_user_mark] = {dt_instants_event, OTHERS},
    [DT_user_trace_s1] = {dt_instants_event, OTHERS},
    [DT_user_trace_i4s4] = {dt_instants_event, OTHERS},
    [DT_user_trace_n] = {dt_instants_event, OTHERS},
    [DT_seq_trace_print] = {dt_instants_event, OTHERS},
    [DT_driver_output] = {dt_instants_event, OTHERS},
    [DT_driver_outputv] = {dt_instants_event, OTHERS},
    [DT_driver_init] = {dt_instants_event, OTHERS},
    [DT_driver_finish] = {dt_instants_event, OTHERS},
    [DT_file_call] = {ignore, OTHERS},
    [DT_file_return] = {ignore, OTHERS},
    [DT_dump_start] = {ignore, OTHERS},
    [DT_dump_end] = {ignore, OTHERS},
    [DT_driver_start] = {ignore, OTHERS},
    [DT_driver_ready_input] = {ignore, OTHERS},
    [DT_driver_ready_output] = {ignore, OTHERS},
    [DT_driver_timeout] = {ignore, OTHERS},
    [DT_driver_stop_select] = {ignore, OTHERS},
    [DT_driver_flush] = {ignore, OTHERS},
    [DT_driver_stop] = {ignore, OTHERS},
    [DT_driver_process_exit] = {ignore, OTHERS},
    [DT_driver_ready_async] = {ignore, OTHERS},
    [DT_driver_call] = {ignore, OTHERS},
    [DT_driver_control] = {ignore, OTHERS},
    [DT_carrier_create] = {ignore, OTHERS},
    [DT_carrier_destroy] = {ignore, OTHERS},
    [DT_carrier_pool_put] = {ignore, OTHERS},
    [DT_carrier_pool_get] = {ignore, OTHERS},
};

static void read_event(void *data, const struct dt_recorded *event) {
    const struct handling *handling = &handlings[event->probe];
    struct dt_model *model = data;
    struct world *world = model->world;
    struct node *node;

    /* The clocks of two traces may differ slightly. */
    if (event->time > world->now)
        world->now = event->time;
    model->events++;
    node = dt_node_of(world, event);
    node->seen.last = world->now;
    node->seen.has_deliveries |= event->has_deliveries;
    node->seen.has_lives |= event->has_lives;
    DT_RUN_HOOKS(world, late, node, world->now);
    if (handling->handle) {
        if (handling->reporter == VM)
            dt_node_resumed(node);
        handling->handle(node, event);
        if (handling->reporter == VM)
            dt_node_traced(node);
    } else {
        dt_instants_general(node, event);
    }
    dt_processes_forget(node);
}

static void skip(void *data) {
    ((struct dt_model *)data)->skipped++;
}

static void losing(void *data, const struct dt_place *place, int64_t begin) {
    struct dt_model *model = data;

    dt_nodes_lost(model->world, place, begin);
}

static void unsure(void *data, const struct dt_place *place, int64_t end) {
    struct dt_model *model = data;

    dt_nodes_unsure(model->world, place, end);
}

static void lost(void *data, const struct dt_place *place, const struct dt_lost *lost) {
    struct dt_model *model = data;
    struct node *node = dt_nodes_lost(model->world, place, lost->begin);
    struct dt_lost report = *lost;

    report.node = node ? &node->seen : NULL;
    DT_EMIT(model->world, lost, &report);
}

const struct dt_reads dt_model_reads = {
    .event = read_event, .skip = skip, .losing = losing, .unsure = unsure, .lost = lost};

bool dt_model_is_nameless(const struct dt_model *model) {
    return model->world->earlier > 0 && model->world->earlier_named == 0;
}

uint64_t dt_model_events(const struct dt_model *model) {
    return model->events;
}

uint64_t dt_model_skipped(const struct dt_model *model) {
    return model->skipped;
}

struct dt_command_notes dt_model_notes(const struct dt_model *model) {
    return model->notes;
}

/* -- Begin and end ------------------------------------------------------------------ */

struct dt_model *dt_model_new(const struct dt_sink *sink, void *of_sink, bool shows_contents,
                              struct dt_command_notes notes) {
    struct dt_model *model = g_new0(struct dt_model, 1);

    model->world = dt_world_new(sink, of_sink, &hooks);
    model->world->shows_contents = shows_contents;
    model->notes = notes;
    return model;
}

void dt_model_end(struct dt_model *model) {
    struct world *world = model->world;
    const GPtrArray *nodes = world->nodes;

    /* An event of one node may begin or end a call of another node, and messages of that node may
       refer to its processes. Each step therefore completes for all nodes before the next. */
    for (unsigned i = 0; i < nodes->len; i++)
        DT_RUN_HOOKS(world, ending, nodes->pdata[i]);
    for (unsigned i = 0; i < nodes->len; i++)
        DT_RUN_HOOKS(world, end, nodes->pdata[i]);
    /* What a node did after its last event is unknown, even if another node has later events. */
    for (unsigned i = 0; i < nodes->len; i++) {
        world->now = ((struct node *)nodes->pdata[i])->seen.last;
        dt_processes_end(nodes->pdata[i]);
    }
    for (unsigned i = 0; i < nodes->len; i++)
        dt_node_last(nodes->pdata[i]);
    for (unsigned i = 0; i < nodes->len; i++)
        DT_EMIT(world, node_gone, &((struct node *)nodes->pdata[i])->seen);
    model->is_ended = true;
}

void dt_model_free(struct dt_model *model) {
    static const struct dt_sink none;

    if (!model)
        return;
    if (!model->is_ended) {
        model->world->sink = &none;
        dt_model_end(model);
    }
    dt_world_free(model->world);
    g_free(model);
}
