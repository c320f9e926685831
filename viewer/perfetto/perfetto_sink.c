/*
 * The sink `perfetto`: a trace for ui.perfetto.dev.
 *
 * If the model reports a slice at its end, begin and end are written together then; Perfetto sorts
 * by time. A flow is written when both of its ends are known.
 */
#include "perfetto/perfetto_sink.h"

#include "shared/sink.h"

/* Indexes of `params`. */
enum { PATH, MESSAGES, WAITING, TEXT };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH(NULL),
    [MESSAGES] = DT_PARAM_BOOL("messages", "yes", "messages as arrows, and mailboxes"),
    [WAITING] =
        DT_PARAM_BOOL("waiting", "yes", "states in which processes wait, also for a scheduler"),
    [TEXT] = DT_PARAM_BOOL("text", "yes", "the texts of messages, arguments and values"),
    {0},
};

static void free_sink(void *data) {
    struct dt_perfetto *s = data;

    g_hash_table_destroy(s->runs);
    g_hash_table_destroy(s->arguments);
    dt_tracks_free(s->tracks);
    dt_packets_free(s->packets);
    g_free(s);
}

static void *start(const union dt_value *values, GError **error) {
    struct dt_packets *packets = dt_packets_open(values[PATH].string, error);

    if (!packets)
        return NULL;
    struct dt_perfetto *s = g_new0(struct dt_perfetto, 1);
    s->packets = packets;
    s->tracks = dt_tracks_new(packets);
    s->runs = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    s->arguments = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    s->has_messages = values[MESSAGES].is;
    s->has_waiting = values[WAITING].is;
    s->has_text = values[TEXT].is;
    return s;
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct dt_perfetto *s = data;

    (void)model;
    if (!s->has_clock)
        dt_nothing(DT_NOTHING_RECORDED);
    dt_tracks_finish(s->tracks);
    return dt_packets_close(s->packets, error);
}

static const GError *failed(void *data) {
    struct dt_perfetto *s = data;

    return dt_packets_failed(s->packets);
}

/* -- Nodes, processes ------------------------------------------------------------------ */

static void node(void *data, struct dt_node *node) {
    struct dt_perfetto *s = data;

    if (!s->has_clock)
        dt_packets_clock(s->packets, node->first);
    s->has_clock = true;
    dt_tracks_node(s->tracks, node);
}

static void node_gone(void *data, struct dt_node *node) {
    struct dt_perfetto *s = data;

    dt_perfetto_end_runs(s, node);
    dt_tracks_node_gone(s->tracks, node);
}

static void process(void *data, struct dt_process *process, int64_t time) {
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

static void process_named(void *data, struct dt_process *process, int64_t time) {
    (void)data;
    (void)time;
    dt_tracks_renamed(process);
}

static void process_exited(void *data, const struct dt_exit *exit) {
    struct dt_perfetto *s = data;
    uint64_t name = dt_name(s->packets, exit->kind == DT_CRASH ? "crash" : "exit");

    dt_event_begin(s->packets, DT_EVENT_INSTANT,
                   dt_tracks_child(s->tracks, exit->process, DT_CHILD_EVENTS), exit->time,
                   DT_CATEGORY_exit);
    dt_event_name(s->packets, name);
    dt_arg_text(s->packets, DT_ARG_reason, exit->reason);
    g_autoptr(GString) linked = g_string_new(NULL);
    for (unsigned i = 0; i < exit->links && linked->len < DT_ARG_MAX; i++)
        g_string_append_printf(linked, "%s%s", i ? ", " : "",
                               dt_tracks_show(s->tracks, exit->linked[i]));
    dt_arg_text(s->packets, DT_ARG_linked, linked->str);
    dt_event_end(s->packets);
}

static void process_gone(void *data, struct dt_process *process) {
    struct dt_perfetto *s = data;

    if (!process->of_sink)
        return;
    dt_perfetto_end_states(s, process);
    dt_perfetto_spawn_flow(s, process, DT_NO_VALUE);
    dt_tracks_process_gone(s->tracks, process);
}

/* -- Calls ----------------------------------------------------------------------------- */

/* A frame that was entered before the recording is reported at its return, so its begin has to
   precede all frames that it contains. */
static int64_t call_time(struct dt_shown *shown, const struct dt_frame *frame) {
    if (frame->begin >= shown->last_call || !frame->inferred)
        return MAX(frame->begin, shown->last_call);
    return MIN(frame->begin, shown->first_call - 1);
}

static void call_begin(void *data, struct dt_frame *frame) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, frame->process);

    /* It was entered while events were lost, so it does not contain the earlier calls. */
    shown->apart = frame->inferred && frame->begin > shown->first_known ? frame->number : 0;
    if (shown->apart)
        return;
    int64_t begin = call_time(shown, frame);
    uint64_t flow = dt_perfetto_spawn_flow(s, frame->process, begin);
    uint64_t track = dt_tracks_child(s->tracks, frame->process, DT_CHILD_CALLS);
    dt_perfetto_begin_slice(s, track, begin, DT_CATEGORY_call, dt_name(s->packets, frame->entry));
    if (flow)
        dt_event_flow_end(s->packets, flow);
    dt_event_end(s->packets);
    shown->first_call = MIN(shown->first_call, begin);
    shown->first_known = MIN(shown->first_known, frame->begin);
    shown->last_call = MAX(shown->last_call, begin);
}

static void arguments(void *data, struct dt_frame *frame, const char *arguments) {
    struct dt_perfetto *s = data;

    if (s->has_text)
        g_hash_table_insert(s->arguments, GSIZE_TO_POINTER(frame->number), g_strdup(arguments));
}

/* The track and the time of the end of a frame. */
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

static void call_end(void *data, struct dt_frame *frame) {
    struct dt_perfetto *s = data;
    int64_t end;
    uint64_t track = call_end_track(s, frame, &end);
    const char *arguments = g_hash_table_lookup(s->arguments, GSIZE_TO_POINTER(frame->number));

    dt_event_begin(s->packets, DT_EVENT_END, track, end, DT_CATEGORY_NONE);
    if (arguments)
        dt_arg_text(s->packets, DT_ARG_arguments, arguments);
    g_hash_table_remove(s->arguments, GSIZE_TO_POINTER(frame->number));
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

static void span(void *data, const struct dt_span *span) {
    struct dt_perfetto *s = data;
    int64_t end = MAX(span->begin, span->end);
    uint64_t track = dt_tracks_lane(s->tracks, span->process, DT_CHILD_SPANS, span->begin, end);

    dt_perfetto_begin_slice(s, track, span->begin, DT_CATEGORY_span,
                            dt_name(s->packets, span->name));
    if (span->telemetry) {
        dt_arg_text(s->packets, DT_ARG_measurements, span->telemetry->measurements);
        dt_arg_text(s->packets, DT_ARG_metadata, span->telemetry->metadata);
    } else {
        dt_arg_int(s->packets, DT_ARG_id, (int64_t)span->id);
    }
    dt_arg_text(s->packets, DT_ARG_outcome, span->outcome);
    if (span->is_open)
        dt_arg_true(s->packets, DT_ARG_open);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t time) {
    struct dt_perfetto *s = data;
    uint64_t track = dt_tracks_counter(s->tracks, node, name, unit);

    dt_event_begin(s->packets, DT_EVENT_COUNTER, track, time, DT_CATEGORY_NONE);
    dt_event_value(s->packets, value);
    dt_event_end(s->packets);
}

/* Perfetto derives the colour of a slice from its name without digits; this name results in red. */
static void lost(void *data, const struct dt_lost *lost) {
    struct dt_perfetto *s = data;
    g_autofree char *name = lost->count
                                ? g_strdup_printf("LOST %" PRIu64 " events (gap)", lost->count)
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
    .start = start,
    .finish = finish,
    .free = free_sink,
    .node = node,
    .node_gone = node_gone,
    .process = process,
    .process_named = process_named,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = dt_perfetto_interval,
    .mailbox = dt_perfetto_mailbox,
    .call_begin = call_begin,
    .call_end = call_end,
    .arguments = arguments,
    .delivered = dt_perfetto_delivered,
    .message_gone = dt_perfetto_message_gone,
    .server_call = dt_perfetto_server_call,
    .span = span,
    .instant = dt_perfetto_instant,
    .counter = counter,
    .lost = lost,
    .failed = failed,
};
