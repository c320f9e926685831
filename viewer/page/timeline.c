#include "page/timeline.h"

#include "shared/probe_fields.h"

enum {
    FUNCTIONS_MOST = 65536,
    CALLS_MOST = 2000,
    SPANS_MOST = 4000,
    MARKS_MOST = 4000,
    EXITS_MOST = 4000,
    LOST_MOST = 1000,
};

struct dt_page_timeline *dt_page_timeline_new(struct dt_actors *actors,
                                              struct dt_page_timeline_limits limits) {
    struct dt_page_timeline *timeline = g_new0(struct dt_page_timeline, 1);

    timeline->rows_most = limits.processes;
    timeline->lanes = dt_page_lanes_new(actors, limits.processes, limits.intervals);
    timeline->functions = dt_page_strings_new(FUNCTIONS_MOST);
    timeline->messages = dt_page_messages_new(limits.messages);
    dt_page_items_init(&timeline->calls, CALLS_MOST);
    dt_page_items_init(&timeline->spans, SPANS_MOST);
    dt_page_items_init(&timeline->marks, MARKS_MOST);
    dt_page_items_init(&timeline->exits, EXITS_MOST);
    timeline->lost = g_array_new(false, false, sizeof(struct dt_lost));
    timeline->begin = INT64_MAX;
    timeline->end = INT64_MIN;
    return timeline;
}

void dt_page_timeline_free(struct dt_page_timeline *timeline) {
    if (!timeline)
        return;
    dt_page_messages_free(timeline->messages);
    dt_page_items_clear(&timeline->calls);
    dt_page_items_clear(&timeline->spans);
    dt_page_items_clear(&timeline->marks);
    dt_page_items_clear(&timeline->exits);
    g_array_free(timeline->lost, true);
    dt_page_lanes_free(timeline->lanes);
    dt_page_strings_free(timeline->functions);
    g_free(timeline);
}

/* -- Collecting ---------------------------------------------------------------------------- */

static void node_gone(void *data, struct dt_node *node) {
    struct dt_page_timeline *timeline = data;

    timeline->begin = MIN(timeline->begin, node->first);
    timeline->end = MAX(timeline->end, node->last);
}

static void process(void *data, struct dt_process *process, int64_t time) {
    struct dt_page_timeline *timeline = data;

    (void)time;
    dt_page_lanes_of(timeline->lanes, process);
}

static void process_exited(void *data, const struct dt_exit *exit) {
    struct dt_page_timeline *timeline = data;
    struct dt_page_lane *lane = dt_page_lanes_of(timeline->lanes, exit->process);
    const struct dt_page_item one = {
        .process = lane,
        .begin = exit->time,
        .end = exit->time,
        .weight = exit->is_crash,
        .kind = exit->is_crash,
        .text = (char *)exit->reason,
    };

    lane->has_crashed = exit->is_crash;
    dt_page_items_add(&timeline->exits, &one);
}

static void process_gone(void *data, struct dt_process *process) {
    struct dt_page_timeline *timeline = data;

    dt_page_lanes_gone(timeline->lanes, process);
}

static void interval(void *data, const struct dt_interval *interval) {
    struct dt_page_timeline *timeline = data;
    const char *function = interval->state == DT_STATE_RUNNING ? interval->in : interval->out;

    dt_page_lanes_add(timeline->lanes, interval,
                      dt_page_strings_number(timeline->functions, function));
}

static void message_gone(void *data, struct dt_message *message) {
    struct dt_page_timeline *timeline = data;
    struct dt_page_lane *from = dt_page_lanes_of(timeline->lanes, message->from);
    struct dt_page_lane *to = dt_page_lanes_of(timeline->lanes, message->to);

    if (from)
        from->messages++;
    if (to)
        to->messages++;
    dt_page_messages_add(timeline->messages, message, from, to);
}

static void server_call(void *data, const struct dt_server_call *call) {
    struct dt_page_timeline *timeline = data;
    const struct dt_page_item one = {
        .process = dt_page_lanes_of(timeline->lanes, call->caller),
        .other = dt_page_lanes_of(timeline->lanes, call->server),
        .begin = call->began,
        .end = call->ended,
        .delivered = call->delivered,
        .taken = call->taken,
        .weight = call->ended - call->began,
        .kind = call->outcome,
        .name = (char *)call->request,
        .text = (char *)call->reply,
    };

    dt_page_items_add(&timeline->calls, &one);
}

static void span(void *data, const struct dt_span *span) {
    struct dt_page_timeline *timeline = data;
    const struct dt_page_item one = {
        .process = dt_page_lanes_of(timeline->lanes, span->process),
        .begin = span->begin,
        .end = span->end,
        .weight = span->end - span->begin,
        .name = (char *)span->name,
        .text = (char *)span->outcome,
    };

    dt_page_items_add(&timeline->spans, &one);
}

/* Events that are shown as marks: a name, and a format for the text. */
#define MARKS(MARK)                                                                                \
    MARK(user_mark, "mark", "%s %" PRId64 " %s", e->name, e->value, e->text)                       \
    MARK(log, "log", "%s: %s", e->level, e->text)                                                  \
    MARK(node_up, "node up", "%s", e->node)                                                        \
    MARK(node_down, "node down", "%s: %s", e->node, e->reason)                                     \
    MARK(vm_long_gc, "long collection", "%" PRIu64 " ms", e->duration)                             \
    MARK(vm_long_schedule, "long schedule", "%" PRIu64 " ms, from %s to %s", e->duration,          \
         e->started, e->stopped)                                                                   \
    MARK(vm_large_heap, "large heap", "%" PRIu64 " words", e->heap)                                \
    MARK(vm_busy_port, "busy port", "%s", e->port)                                                 \
    MARK(vm_busy_dist_port, "busy connection", "%s", e->node)                                      \
    MARK(vm_long_message_queue, "message queue", "%s", e->type)                                    \
    MARK(seq_trace_print, "seq_trace", "%s", e->message)                                           \
    MARK(user_trace_s1, "trace", "%s", e->message)                                                 \
    MARK(user_trace_i4s4, "trace", "%s", e->user_tag)                                              \
    MARK(user_trace_n, "trace", "%s", e->user_tag)

/* Returns the name of a mark and sets its text; NULL if the instant is not a mark. */
static const char *mark_of(const struct dt_instant *instant, GString *text) {
    const struct dt_recorded *event = instant->event;

    if (instant->is_general) {
        dt_fields_text(text, event);
        return dt_probe_names[event->probe];
    }
    switch (event->probe) {
#define MARK(probe, name, ...)                                                                     \
    case DT_##probe: {                                                                             \
        const struct dt_##probe *e = &event->fields.probe;                                         \
                                                                                                   \
        g_string_printf(text, __VA_ARGS__);                                                        \
        return name;                                                                               \
    }
        MARKS(MARK)
#undef MARK
    default:
        return NULL;
    }
}

static void instant(void *data, const struct dt_instant *instant) {
    struct dt_page_timeline *timeline = data;
    GString *text = g_string_new(NULL);
    const char *name = mark_of(instant, text);

    if (name) {
        const struct dt_page_item one = {
            .process = dt_page_lanes_of(timeline->lanes, instant->process),
            .begin = instant->event->time,
            .end = instant->event->time,
            /* If there are too many, a random selection is kept. */
            .weight = (int64_t)(((uint64_t)instant->event->time * 0x9e3779b97f4a7c15U) >> 1),
            .name = (char *)name,
            .text = text->str,
        };

        dt_page_items_add(&timeline->marks, &one);
    }
    g_string_free(text, true);
}

static void lost(void *data, const struct dt_lost *lost) {
    struct dt_page_timeline *timeline = data;
    struct dt_lost *last;

    if (timeline->lost->len < LOST_MOST) {
        g_array_append_vals(timeline->lost, lost, 1);
        return;
    }
    last = &g_array_index(timeline->lost, struct dt_lost, LOST_MOST - 1);
    last->begin = MIN(last->begin, lost->begin);
    last->end = MAX(last->end, lost->end);
    last->count = last->count && lost->count ? last->count + lost->count : 0;
}

const struct dt_sink dt_page_timeline_collector = {
    .node_gone = node_gone,
    .process = process,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = interval,
    .message_gone = message_gone,
    .server_call = server_call,
    .span = span,
    .instant = instant,
    .lost = lost,
};
