/*
 * A trace for ui.perfetto.dev.
 *
 * Slices that the model tells at their end are written then, begin and end at once: Perfetto sorts
 * by time. Flows are written when both ends are known, so each one has both.
 */
#include "perfetto/instants.h"
#include "perfetto/messages.h"
#include "perfetto/slices.h"
#include "shared/sink.h"

/* In the order of `params`. */
enum { PATH, MESSAGES, WAITING, TEXT };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH(NULL),
    [MESSAGES] = {.name = "messages",
                  .type = DT_PARAM_BOOL,
                  .standard = "yes",
                  .meaning = "messages as arrows, and mailboxes"},
    [WAITING] = {.name = "waiting",
                 .type = DT_PARAM_BOOL,
                 .standard = "yes",
                 .meaning = "where processes wait, and wait for a scheduler"},
    [TEXT] = {.name = "text",
              .type = DT_PARAM_BOOL,
              .standard = "yes",
              .meaning = "the texts of messages, arguments and values"},
    {0},
};

static void perfetto_free(void *data) {
    struct dt_perfetto *s = data;
    dt_tracks_free(s->tracks);
    dt_packets_free(s->packets);
    g_free(s);
}

static void *perfetto_start(const union dt_value *values, GError **error) {
    struct dt_packets *packets = dt_packets_open(values[PATH].string, error);
    if (!packets)
        return NULL;
    struct dt_perfetto *s = g_new0(struct dt_perfetto, 1);
    s->packets = packets;
    s->tracks = dt_tracks_new(packets);
    s->has_messages = values[MESSAGES].is;
    s->has_waiting = values[WAITING].is;
    s->has_text = values[TEXT].is;
    return s;
}

static bool perfetto_finish(void *data, const struct dt_model *model, GError **error) {
    struct dt_perfetto *s = data;
    (void)model;
    dt_tracks_finish(s->tracks);
    return dt_packets_close(s->packets, error);
}

static const GError *perfetto_failed(void *data) {
    struct dt_perfetto *s = data;
    return dt_packets_failed(s->packets);
}

/* -- Nodes, processes ------------------------------------------------------------------ */

static void perfetto_node(void *data, struct dt_node *node) {
    struct dt_perfetto *s = data;
    if (!s->has_clock)
        dt_packets_clock(s->packets, node->first);
    s->has_clock = true;
    dt_tracks_node(s->tracks, node);
}

static void perfetto_node_gone(void *data, struct dt_node *node) {
    struct dt_perfetto *s = data;
    dt_tracks_node_gone(s->tracks, node);
}

static void perfetto_process(void *data, struct dt_process *process, int64_t time) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, process);
    (void)time;
    if (process->began == DT_NO_VALUE || !process->parent || process->parent == process ||
        process->kind != DT_PROCESS)
        return;
    shown->spawn.track = dt_tracks_child(s->tracks, process->parent, DT_CHILD_EVENTS);
    shown->spawn.time = process->began;
    shown->spawn.parent = g_strdup(dt_tracks_show(s->tracks, process->parent));
}

/* Returns the flow that the next event of the process ends; 0: it was not spawned, or that event is
   not its first one. */
static uint64_t spawn_flow(struct dt_perfetto *s, struct dt_process *process, int64_t time) {
    struct dt_spawn *spawn = &dt_tracks_shown(s->tracks, process)->spawn;
    if (!spawn->track)
        return 0;
    bool is_flow = time != DT_NO_VALUE && time >= spawn->time;
    uint64_t name = dt_name(s->packets, "spawn"), flow = is_flow ? ++s->last_flow : 0;
    dt_event_begin(s->packets, DT_EVENT_INSTANT, spawn->track, spawn->time, DT_CATEGORY_spawn);
    dt_event_name(s->packets, name);
    dt_arg_text(s->packets, DT_ARG_parent, spawn->parent);
    dt_arg_text(s->packets, DT_ARG_child, dt_tracks_show(s->tracks, process));
    if (flow)
        dt_event_flow(s->packets, flow);
    dt_event_end(s->packets);
    spawn->track = 0;
    g_clear_pointer(&spawn->parent, g_free);
    return flow;
}

static void perfetto_process_named(void *data, struct dt_process *process, int64_t time) {
    (void)data;
    (void)time;
    dt_tracks_renamed(process);
}

static void perfetto_process_exited(void *data, const struct dt_exit *exit) {
    struct dt_perfetto *s = data;
    uint64_t name = dt_name(s->packets, exit->is_crash ? "crash" : "exit");
    dt_event_begin(s->packets, DT_EVENT_INSTANT,
                   dt_tracks_child(s->tracks, exit->process, DT_CHILD_EVENTS), exit->time,
                   DT_CATEGORY_exit);
    dt_event_name(s->packets, name);
    dt_arg_text(s->packets, DT_ARG_reason, exit->reason);
    GString *linked = g_string_new("");
    for (unsigned i = 0; i < exit->links && linked->len < DT_ARG_MAX; i++)
        g_string_append_printf(linked, "%s%s", i ? ", " : "",
                               dt_tracks_show(s->tracks, exit->linked[i]));
    dt_arg_text(s->packets, DT_ARG_linked, linked->str);
    g_string_free(linked, true);
    dt_event_end(s->packets);
}

static void perfetto_process_gone(void *data, struct dt_process *process) {
    struct dt_perfetto *s = data;
    if (!process->of_sink)
        return;
    spawn_flow(s, process, DT_NO_VALUE);
    dt_tracks_process_gone(s->tracks, process);
}

/* -- Who runs, states ------------------------------------------------------------------ */

static uint64_t show_number(struct dt_perfetto *s, struct dt_process *process) {
    struct dt_shown *shown = dt_tracks_shown(s->tracks, process);
    return dt_name_cached(s->packets, &shown->name, dt_tracks_show(s->tracks, process));
}

/* The slice of a scheduler: which process it ran. */
static void write_run(struct dt_perfetto *s, const struct dt_interval *i) {
    uint64_t track = dt_tracks_scheduler(s->tracks, i->scheduler, i->begin, i->end);
    uint64_t name = show_number(s, i->process);
    dt_perfetto_begin_slice(s, track, i->begin, DT_CATEGORY_schedule, name);
    dt_arg_text(s->packets, DT_ARG_pid, i->process->pid);
    dt_arg_text(s->packets, DT_ARG_in, i->in);
    dt_arg_text(s->packets, DT_ARG_out, i->out);
    dt_event_end(s->packets);
    if (i->state == DT_STATE_COLLECTING) {
        name = dt_name(s->packets, dt_state_names[i->state]);
        dt_perfetto_begin_slice(s, track, i->begin, DT_CATEGORY_collect, name);
        dt_event_end(s->packets);
        dt_perfetto_end_slice(s, track, i->end);
    }
    dt_perfetto_end_slice(s, track, i->end);
}

static void write_state(struct dt_perfetto *s, const struct dt_interval *i, int64_t begin) {
    uint64_t flow = spawn_flow(s, i->process, begin);
    uint64_t track = dt_tracks_process(s->tracks, i->process);
    uint64_t name = dt_name(s->packets, dt_state_names[i->state]);
    dt_perfetto_begin_slice(s, track, begin, DT_CATEGORY_state, name);
    if (flow)
        dt_event_flow_end(s->packets, flow);
    dt_arg_text(s->packets, DT_ARG_in, i->in);
    dt_arg_text(s->packets, DT_ARG_out, i->out);
    if (i->scheduler)
        dt_arg_text(s->packets, DT_ARG_scheduler, i->scheduler->name);
    if (i->inferred)
        dt_arg_true(s->packets, DT_ARG_inferred);
    if (i->is_open)
        dt_arg_true(s->packets, DT_ARG_open);
    if (i->state == DT_STATE_COLLECTING) {
        if (i->is_major)
            dt_arg_true(s->packets, DT_ARG_major);
        dt_arg_int(s->packets, DT_ARG_reclaimed_words, (int64_t)i->reclaimed);
        dt_arg_int(s->packets, DT_ARG_heap_words, (int64_t)i->heap);
        dt_arg_int(s->packets, DT_ARG_old_heap_words, (int64_t)i->old_heap);
    }
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, i->end);
}

static void perfetto_interval(void *data, const struct dt_interval *i) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, i->process);
    bool runs = dt_is_busy(i->state);
    int64_t begin = MAX(i->begin, shown->last_state);
    if (i->state == DT_STATE_UNKNOWN || i->end < begin)
        return;
    /* Between its runs a port has nothing to wait for. */
    bool is_idle = i->process->kind == DT_PORT && i->state == DT_STATE_WAITING;
    if (!runs && (!s->has_waiting || i->end == begin || is_idle))
        return;
    write_state(s, i, begin);
    shown->last_state = i->end;
    if (!runs)
        return;
    shown->run += i->end - begin;
    if (i->scheduler)
        write_run(s, i);
}

/* -- Calls ----------------------------------------------------------------------------- */

/* A frame that was entered before the recording is told at its return, so it begins before all
   that it holds. */
static int64_t call_time(struct dt_shown *shown, const struct dt_frame *frame) {
    if (frame->begin >= shown->last_call || !frame->inferred)
        return MAX(frame->begin, shown->last_call);
    return MIN(frame->begin, shown->first_call - 1);
}

static void perfetto_call_begin(void *data, struct dt_frame *frame) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, frame->process);
    /* Entered while events were lost: it does not hold what was called before that. */
    shown->apart = frame->inferred && frame->begin > shown->first_known ? frame->number : 0;
    if (shown->apart)
        return;
    int64_t begin = call_time(shown, frame);
    uint64_t flow = spawn_flow(s, frame->process, begin);
    uint64_t track = dt_tracks_child(s->tracks, frame->process, DT_CHILD_CALLS);
    dt_perfetto_begin_slice(s, track, begin, DT_CATEGORY_call, dt_name(s->packets, frame->entry));
    if (flow)
        dt_event_flow_end(s->packets, flow);
    dt_event_end(s->packets);
    shown->first_call = MIN(shown->first_call, begin);
    shown->first_known = MIN(shown->first_known, frame->begin);
    shown->last_call = MAX(shown->last_call, begin);
}

static void perfetto_arguments(void *data, struct dt_frame *frame, const char *arguments) {
    struct dt_perfetto *s = data;
    if (!s->has_text)
        return;
    g_free(frame->of_sink);
    frame->of_sink = g_strdup(arguments);
}

/* The track and time of a frame's end. */
static uint64_t call_end_track(struct dt_perfetto *s, const struct dt_frame *frame, int64_t *end) {
    struct dt_shown *shown = dt_tracks_shown(s->tracks, frame->process);
    if (shown->apart != frame->number) {
        *end = shown->last_call = MAX(shown->last_call, frame->end);
        return dt_tracks_child(s->tracks, frame->process, DT_CHILD_CALLS);
    }
    *end = MAX(frame->begin, frame->end);
    uint64_t track = dt_tracks_lane(s->tracks, frame->process, DT_CHILD_CALLS, frame->begin, *end);
    dt_perfetto_begin_slice(s, track, frame->begin, DT_CATEGORY_call,
                            dt_name(s->packets, frame->entry));
    dt_event_end(s->packets);
    return track;
}

static void perfetto_call_end(void *data, struct dt_frame *frame) {
    struct dt_perfetto *s = data;
    int64_t end;
    uint64_t track = call_end_track(s, frame, &end);
    dt_event_begin(s->packets, DT_EVENT_END, track, end, DT_CATEGORY_NONE);
    if (frame->of_sink)
        dt_arg_text(s->packets, DT_ARG_arguments, frame->of_sink);
    g_clear_pointer(&frame->of_sink, g_free);
    dt_arg_text(s->packets, DT_ARG_left, dt_left_names[frame->left]);
    dt_arg_text(s->packets, DT_ARG_class, frame->class);
    if (s->has_text)
        dt_arg_text(s->packets, DT_ARG_value, frame->value);
    dt_arg_int(s->packets, DT_ARG_own_ns, frame->own);
    if (frame->waited != DT_NO_VALUE)
        dt_arg_int(s->packets, DT_ARG_waited_ns, frame->waited);
    if (frame->inferred)
        dt_arg_true(s->packets, DT_ARG_inferred);
    dt_event_end(s->packets);
}

/* -- The rest -------------------------------------------------------------------------- */

static void perfetto_span(void *data, const struct dt_span *span) {
    struct dt_perfetto *s = data;
    int64_t end = MAX(span->begin, span->end);
    uint64_t track = dt_tracks_lane(s->tracks, span->process, DT_CHILD_SPANS, span->begin, end);
    dt_perfetto_begin_slice(s, track, span->begin, DT_CATEGORY_span,
                            dt_name(s->packets, span->name));
    dt_arg_int(s->packets, DT_ARG_id, (int64_t)span->id);
    dt_arg_text(s->packets, DT_ARG_outcome, span->outcome);
    if (span->is_open)
        dt_arg_true(s->packets, DT_ARG_open);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
}

static void perfetto_instant(void *data, const struct dt_instant *instant) {
    struct dt_perfetto *s = data;
    dt_perfetto_instant(s->packets, s->tracks, instant);
}

static void perfetto_counter(void *data, struct dt_node *node, const char *name, const char *unit,
                             int64_t value, int64_t time) {
    struct dt_perfetto *s = data;
    uint64_t track = dt_tracks_counter(s->tracks, node, name, unit);
    dt_event_begin(s->packets, DT_EVENT_COUNTER, track, time, DT_CATEGORY_NONE);
    dt_event_value(s->packets, value);
    dt_event_end(s->packets);
}

/* Perfetto takes a slice's colour from its name without the digits; for this one it is red. */
static void perfetto_lost(void *data, const struct dt_lost *lost) {
    struct dt_perfetto *s = data;
    g_autofree char *name =
        lost->count ? g_strdup_printf("LOST %" G_GUINT64_FORMAT " events (gap)", lost->count)
                    : g_strdup("LOST events (gap)");
    int64_t end = MAX(lost->begin, lost->end);
    uint64_t track = dt_tracks_lost(s->tracks, lost->node, lost->begin, end);
    dt_event_begin(s->packets, DT_EVENT_BEGIN, track, lost->begin, DT_CATEGORY_lost);
    dt_event_text(s->packets, name, "");
    dt_arg_text(s->packets, DT_ARG_stream, lost->stream);
    if (lost->count)
        dt_arg_int(s->packets, DT_ARG_count, (int64_t)lost->count);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
}

const struct dt_sink dt_sink_perfetto = {
    .description = "a trace for ui.perfetto.dev",
    .params = params,
    .start = perfetto_start,
    .finish = perfetto_finish,
    .free = perfetto_free,
    .node = perfetto_node,
    .node_gone = perfetto_node_gone,
    .process = perfetto_process,
    .process_named = perfetto_process_named,
    .process_exited = perfetto_process_exited,
    .process_gone = perfetto_process_gone,
    .interval = perfetto_interval,
    .mailbox = dt_perfetto_mailbox,
    .call_begin = perfetto_call_begin,
    .call_end = perfetto_call_end,
    .arguments = perfetto_arguments,
    .delivered = dt_perfetto_delivered,
    .message_gone = dt_perfetto_message_gone,
    .server_call = dt_perfetto_server_call,
    .span = perfetto_span,
    .instant = perfetto_instant,
    .counter = perfetto_counter,
    .lost = perfetto_lost,
    .failed = perfetto_failed,
};
