#include "viewer/html_timeline.h"

#include <inttypes.h>

#include "viewer/html_lanes.h"
#include "viewer/html_messages.h"
#include "viewer/html_moments.h"
#include "viewer/json.h"

enum {
    FUNCTIONS_MOST = 65536,
    CALLS_MOST = 2000,
    SPANS_MOST = 4000,
    MARKS_MOST = 4000,
    EXITS_MOST = 4000,
    LOST_MOST = 1000,
};

struct dt_timeline {
    struct dt_html_lanes *lanes;
    struct dt_strings *functions;
    struct dt_page_messages *messages;
    struct dt_moments calls, spans, marks, exits;
    GArray *lost; /* of struct dt_lost, without its texts */
    unsigned rows_most;
    int64_t begin, end;
};

struct dt_timeline *dt_timeline_new(struct dt_report *report, struct dt_timeline_limits limits) {
    struct dt_timeline *timeline = g_new0(struct dt_timeline, 1);

    timeline->rows_most = limits.processes;
    timeline->lanes = dt_html_lanes_new(report, limits.processes, limits.intervals);
    timeline->functions = dt_strings_new(FUNCTIONS_MOST);
    timeline->messages = dt_page_messages_new(limits.messages);
    dt_moments_init(&timeline->calls, CALLS_MOST);
    dt_moments_init(&timeline->spans, SPANS_MOST);
    dt_moments_init(&timeline->marks, MARKS_MOST);
    dt_moments_init(&timeline->exits, EXITS_MOST);
    timeline->lost = g_array_new(FALSE, FALSE, sizeof(struct dt_lost));
    timeline->begin = INT64_MAX;
    timeline->end = INT64_MIN;
    return timeline;
}

void dt_timeline_free(struct dt_timeline *timeline) {
    if (!timeline)
        return;
    dt_page_messages_free(timeline->messages);
    dt_moments_clear(&timeline->calls);
    dt_moments_clear(&timeline->spans);
    dt_moments_clear(&timeline->marks);
    dt_moments_clear(&timeline->exits);
    g_array_free(timeline->lost, TRUE);
    dt_html_lanes_free(timeline->lanes);
    dt_strings_free(timeline->functions);
    g_free(timeline);
}

/* -- Collecting ---------------------------------------------------------------------------- */

static void node_gone(void *s, struct dt_node *node) {
    struct dt_timeline *timeline = s;

    timeline->begin = MIN(timeline->begin, node->first);
    timeline->end = MAX(timeline->end, node->last);
}

static void process(void *s, struct dt_process *process, int64_t time) {
    struct dt_timeline *timeline = s;

    (void)time;
    dt_html_lanes_of(timeline->lanes, process);
}

static void process_exited(void *s, const struct dt_exit *exit) {
    struct dt_timeline *timeline = s;
    struct dt_lane *lane = dt_html_lanes_of(timeline->lanes, exit->process);
    const struct dt_moment one = {
        .process = lane,
        .begin = exit->time,
        .end = exit->time,
        .weight = exit->is_crash,
        .kind = exit->is_crash,
        .text = (char *)exit->reason,
    };

    lane->has_crashed = exit->is_crash;
    dt_moments_add(&timeline->exits, &one);
}

static void process_gone(void *s, struct dt_process *process) {
    struct dt_timeline *timeline = s;

    dt_html_lanes_gone(timeline->lanes, process);
}

static void interval(void *s, const struct dt_interval *interval) {
    struct dt_timeline *timeline = s;
    const char *function = interval->state == DT_STATE_RUNNING ? interval->in : interval->out;

    dt_html_lanes_add(timeline->lanes, interval, dt_strings_number(timeline->functions, function));
}

static void message_gone(void *s, struct dt_message *message) {
    struct dt_timeline *timeline = s;
    struct dt_lane *from = dt_html_lanes_of(timeline->lanes, message->from);
    struct dt_lane *to = dt_html_lanes_of(timeline->lanes, message->to);

    if (from)
        from->messages++;
    if (to)
        to->messages++;
    dt_page_messages_add(timeline->messages, message, from, to);
}

static void server_call(void *s, const struct dt_server_call *call) {
    struct dt_timeline *timeline = s;
    const struct dt_moment one = {
        .process = dt_html_lanes_of(timeline->lanes, call->caller),
        .other = dt_html_lanes_of(timeline->lanes, call->server),
        .begin = call->began,
        .end = call->ended,
        .delivered = call->delivered,
        .taken = call->taken,
        .weight = call->ended - call->began,
        .kind = call->outcome,
        .name = (char *)call->request,
        .text = (char *)call->reply,
    };

    dt_moments_add(&timeline->calls, &one);
}

static void span(void *s, const struct dt_span *span) {
    struct dt_timeline *timeline = s;
    const struct dt_moment one = {
        .process = dt_html_lanes_of(timeline->lanes, span->process),
        .begin = span->begin,
        .end = span->end,
        .weight = span->end - span->begin,
        .name = (char *)span->name,
        .text = (char *)span->outcome,
    };

    dt_moments_add(&timeline->spans, &one);
}

/* What is shown as a mark: a name, and the text by a format. */
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

/* The name of a mark; NULL: it is none. */
static const char *mark(const struct dt_recorded *event, GString *text) {
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

static void instant(void *s, const struct dt_instant *instant) {
    struct dt_timeline *timeline = s;
    GString *text = g_string_new(NULL);
    const char *name = mark(instant->event, text);

    if (name) {
        const struct dt_moment one = {
            .process = dt_html_lanes_of(timeline->lanes, instant->process),
            .begin = instant->event->time,
            .end = instant->event->time,
            /* Of too many, any are kept. */
            .weight = (int64_t)(((uint64_t)instant->event->time * 0x9e3779b97f4a7c15U) >> 1),
            .name = (char *)name,
            .text = text->str,
        };

        dt_moments_add(&timeline->marks, &one);
    }
    g_string_free(text, TRUE);
}

static void lost(void *s, const struct dt_lost *lost) {
    struct dt_timeline *timeline = s;
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

const struct dt_sink dt_timeline_collects = {
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

/* -- JSON ------------------------------------------------------------------------------------ */

struct writer {
    struct dt_timeline *timeline;
    GString *to;
    GPtrArray *processes; /* lanes, by index; rows come first */
    struct dt_strings *strings;
};

/* A time since the recording's begin. */
static void time_json(const struct writer *w, const char *name, int64_t time) {
    dt_json_number(w->to, name, time == DT_NO_VALUE ? time : time - w->timeline->begin);
}

static void number(const struct writer *w, int64_t value) {
    dt_json_number(w->to, NULL, value);
}

static void time_of(const struct writer *w, int64_t time) {
    time_json(w, NULL, time);
}

static void text_of(const struct writer *w, const char *text) {
    number(w, dt_strings_number(w->strings, text));
}

static void process_of(const struct writer *w, struct dt_lane *lane) {
    if (!lane) {
        dt_json_null(w->to, NULL);
        return;
    }
    if (lane->index < 0) {
        lane->index = (int)w->processes->len;
        g_ptr_array_add(w->processes, lane);
    }
    number(w, lane->index);
}

static void messages_json(const struct writer *w) {
    const GArray *messages = dt_page_messages_sorted(w->timeline->messages);

    dt_json_open(w->to, "messages", '[');
    for (unsigned n = 0; n < messages->len; n++) {
        const struct dt_page_message *message = &g_array_index(messages, struct dt_page_message, n);

        process_of(w, message->from);
        process_of(w, message->to);
        time_of(w, message->sent);
        time_of(w, message->delivered);
        number(w, message->matched);
        text_of(w, message->text);
        number(w, message->is_dead);
    }
    dt_json_close(w->to, ']');
    dt_page_messages_covered(w->timeline->messages, w->timeline->begin, w->to);
}

static void moments_json(const struct writer *w, const char *name, struct dt_moments *moments,
                         void (*each)(const struct writer *, const struct dt_moment *)) {
    dt_moments_sort(moments);
    dt_json_open(w->to, name, '[');
    for (unsigned n = 0; n < moments->of->len; n++)
        each(w, &g_array_index(moments->of, struct dt_moment, n));
    dt_json_close(w->to, ']');
}

static void call_json(const struct writer *w, const struct dt_moment *call) {
    process_of(w, call->process);
    process_of(w, call->other);
    time_of(w, call->begin);
    time_of(w, call->delivered);
    time_of(w, call->taken);
    time_of(w, call->end);
    number(w, call->kind);
    text_of(w, call->name);
    text_of(w, call->text);
}

static void span_json(const struct writer *w, const struct dt_moment *span) {
    process_of(w, span->process);
    time_of(w, span->begin);
    time_of(w, span->end);
    text_of(w, span->name);
    text_of(w, span->text);
}

static void mark_json(const struct writer *w, const struct dt_moment *mark) {
    process_of(w, mark->process);
    time_of(w, mark->begin);
    text_of(w, mark->name);
    text_of(w, mark->text);
}

static void exit_json(const struct writer *w, const struct dt_moment *exit) {
    /* The timeline shows those of its rows, and its ruler crashes. */
    if (exit->process->index < 0 && !exit->kind)
        return;
    process_of(w, exit->process);
    time_of(w, exit->begin);
    text_of(w, exit->text);
    number(w, exit->kind);
}

static void lost_json(const struct writer *w) {
    const GArray *lost = w->timeline->lost;

    dt_json_open(w->to, "lost", '[');
    for (unsigned n = 0; n < lost->len; n++) {
        const struct dt_lost *one = &g_array_index(lost, struct dt_lost, n);

        time_of(w, one->begin);
        time_of(w, one->end);
        number(w, (int64_t)one->count);
    }
    dt_json_close(w->to, ']');
}

static void intervals_json(const struct writer *w, const struct dt_lane *lane) {
    int64_t last = w->timeline->begin;

    dt_json_open(w->to, "intervals", '[');
    for (unsigned n = 0; n < dt_lane_size(lane); n++) {
        const struct dt_lane_interval *of =
            &g_array_index(lane->intervals, struct dt_lane_interval, n);

        number(w, of->begin - last);
        number(w, of->end - of->begin);
        number(w, of->state);
        text_of(w, dt_strings_text(w->timeline->functions, of->text));
        number(w, of->extra);
        last = of->end;
    }
    dt_json_close(w->to, ']');
}

static void process_json(const struct writer *w, const struct dt_lane *lane, bool is_row) {
    const struct dt_who *who = lane->who;

    dt_json_open(w->to, NULL, '{');
    dt_json_number(w->to, "number", (int64_t)who->number);
    dt_json_text(w->to, "pid", who->pid);
    dt_json_text(w->to, "show", who->show);
    /* The others are only named. */
    if (is_row) {
        dt_json_boolean(w->to, "row", true);
        dt_json_text(w->to, "kind", dt_kind_names[who->kind]);
        dt_json_text(w->to, "node", dt_who_node(who));
        dt_json_text(w->to, "name", who->name);
        dt_json_text(w->to, "group", who->group);
        time_json(w, "began", who->began);
        time_json(w, "ended", who->ended);
        intervals_json(w, lane);
    }
    dt_json_close(w->to, '}');
}

static void summary_json(const struct writer *w, const GPtrArray *rows) {
    const struct dt_timeline *timeline = w->timeline;
    uint64_t seen = 0, kept = 0, merged = 0;

    for (unsigned n = 0; n < rows->len; n++) {
        const struct dt_lane *lane = g_ptr_array_index(rows, n);

        seen += lane->intervals_seen;
        kept += dt_lane_size(lane);
        merged += lane->merged;
    }
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"processes", dt_html_lanes_seen(timeline->lanes)},
        {"rows", rows->len},
        {"rows_most", timeline->rows_most},
        {"intervals", seen},
        {"intervals_kept", kept},
        {"merged", merged},
        {"messages", dt_page_messages_seen(timeline->messages)},
        {"messages_kept", dt_page_messages_sorted(timeline->messages)->len},
        {"calls", timeline->calls.seen},
        {"calls_kept", timeline->calls.of->len},
        {"spans", timeline->spans.seen},
        {"spans_kept", timeline->spans.of->len},
        {"marks", timeline->marks.seen},
        {"marks_kept", timeline->marks.of->len},
    };
    dt_json_open(w->to, "summary", '{');
    for (unsigned n = 0; n < G_N_ELEMENTS(numbers); n++)
        dt_json_number(w->to, numbers[n].name, (int64_t)numbers[n].number);
    dt_json_close(w->to, '}');
}

void dt_timeline_json(struct dt_timeline *timeline, GString *to) {
    const GPtrArray *rows = dt_html_lanes_rows(timeline->lanes);
    struct writer w = {
        .timeline = timeline,
        .to = to,
        .processes = g_ptr_array_new(),
        .strings = dt_strings_new(UINT32_MAX),
    };

    if (timeline->begin > timeline->end)
        timeline->begin = timeline->end = 0;
    for (unsigned n = 0; n < rows->len; n++) {
        struct dt_lane *lane = g_ptr_array_index(rows, n);

        lane->index = (int)n;
        g_ptr_array_add(w.processes, lane);
    }
    g_autofree char *begin = g_strdup_printf("%" PRId64, timeline->begin);
    dt_json_open(to, NULL, '{');
    /* A text: numbers of JavaScript are not that exact. */
    dt_json_text(to, "begin", begin);
    dt_json_number(to, "length", timeline->end - timeline->begin);
    messages_json(&w);
    moments_json(&w, "calls", &timeline->calls, call_json);
    moments_json(&w, "spans", &timeline->spans, span_json);
    moments_json(&w, "marks", &timeline->marks, mark_json);
    moments_json(&w, "exits", &timeline->exits, exit_json);
    lost_json(&w);
    /* Last: the lists above name processes and texts. */
    dt_json_open(to, "processes", '[');
    for (unsigned n = 0; n < w.processes->len; n++)
        process_json(&w, g_ptr_array_index(w.processes, n), n < rows->len);
    dt_json_close(to, ']');
    dt_strings_json(w.strings, to);
    summary_json(&w, rows);
    dt_json_close(to, '}');
    g_ptr_array_free(w.processes, TRUE);
    dt_strings_free(w.strings);
}
