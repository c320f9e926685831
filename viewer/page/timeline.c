#include "page/timeline.h"

#include "page/marks.h"

enum {
    FUNCTIONS_MOST = 65536,
    CALLS_MOST = 2000,
    SPANS_MOST = 4000,
    MARKS_MOST = 4000,
    EXITS_MOST = 4000,
    LOST_MOST = 1000,
};

struct dt_page_timeline *dt_page_timeline_new(struct dt_whos *whos,
                                              struct dt_page_timeline_limits limits) {
    struct dt_page_timeline *timeline = g_new0(struct dt_page_timeline, 1);

    timeline->rows_most = limits.processes;
    timeline->lanes = dt_page_lanes_new(whos, limits.processes, limits.intervals);
    timeline->functions = dt_page_strings_new(FUNCTIONS_MOST);
    timeline->messages = dt_page_messages_new(limits.messages);
    dt_page_items_init(&timeline->calls, CALLS_MOST);
    dt_page_items_init(&timeline->spans, SPANS_MOST);
    dt_page_items_init(&timeline->marks, MARKS_MOST);
    dt_page_items_init(&timeline->exits, EXITS_MOST);
    timeline->lost = g_array_new(FALSE, FALSE, sizeof(struct dt_lost));
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
    g_array_free(timeline->lost, TRUE);
    dt_page_lanes_free(timeline->lanes);
    dt_page_strings_free(timeline->functions);
    g_free(timeline);
}

/* -- Collecting ---------------------------------------------------------------------------- */

static void node_gone(void *s, struct dt_node *node) {
    struct dt_page_timeline *timeline = s;

    timeline->begin = MIN(timeline->begin, node->first);
    timeline->end = MAX(timeline->end, node->last);
}

static void process(void *s, struct dt_process *process, int64_t time) {
    struct dt_page_timeline *timeline = s;

    (void)time;
    dt_page_lanes_of(timeline->lanes, process);
}

static void process_exited(void *s, const struct dt_exit *exit) {
    struct dt_page_timeline *timeline = s;
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

static void process_gone(void *s, struct dt_process *process) {
    struct dt_page_timeline *timeline = s;

    dt_page_lanes_gone(timeline->lanes, process);
}

static void interval(void *s, const struct dt_interval *interval) {
    struct dt_page_timeline *timeline = s;
    const char *function = interval->state == DT_STATE_RUNNING ? interval->in : interval->out;

    dt_page_lanes_add(timeline->lanes, interval,
                      dt_page_strings_number(timeline->functions, function));
}

static void message_gone(void *s, struct dt_message *message) {
    struct dt_page_timeline *timeline = s;
    struct dt_page_lane *from = dt_page_lanes_of(timeline->lanes, message->from);
    struct dt_page_lane *to = dt_page_lanes_of(timeline->lanes, message->to);

    if (from)
        from->messages++;
    if (to)
        to->messages++;
    dt_page_messages_add(timeline->messages, message, from, to);
}

static void server_call(void *s, const struct dt_server_call *call) {
    struct dt_page_timeline *timeline = s;
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

static void span(void *s, const struct dt_span *span) {
    struct dt_page_timeline *timeline = s;
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

static void instant(void *s, const struct dt_instant *instant) {
    struct dt_page_timeline *timeline = s;
    GString *text = g_string_new(NULL);
    const char *name = dt_page_mark(instant, text);

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
    g_string_free(text, TRUE);
}

static void lost(void *s, const struct dt_lost *lost) {
    struct dt_page_timeline *timeline = s;
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

const struct dt_sink dt_page_timeline_collects = {
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
