/* The timeline as JSON. */
#include "page/timeline.h"

#include "page/folds.h"
#include "page/strings.h"
#include "shared/json.h"

struct writer {
    struct dt_page_timeline *timeline;
    GString *to;
    GPtrArray *processes; /* lanes by index: rows, lanes to unfold, others */
    struct dt_page_strings *strings;
};

/* A time relative to the begin of the recording. */
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
    number(w, dt_page_strings_number(w->strings, text));
}

static int index_of(const struct writer *w, struct dt_page_lane *lane) {
    if (lane->index < 0) {
        lane->index = (int)w->processes->len;
        g_ptr_array_add(w->processes, lane);
    }
    return lane->index;
}

static void process_of(const struct writer *w, struct dt_page_lane *lane) {
    if (lane)
        number(w, index_of(w, lane));
    else
        dt_json_null(w->to, NULL);
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

static void items_json(const struct writer *w, const char *name, struct dt_page_items *items,
                       void (*each)(const struct writer *, const struct dt_page_item *)) {
    dt_page_items_sort(items);
    dt_json_open(w->to, name, '[');
    for (unsigned n = 0; n < items->of->len; n++)
        each(w, &g_array_index(items->of, struct dt_page_item, n));
    dt_json_close(w->to, ']');
}

static void call_json(const struct writer *w, const struct dt_page_item *call) {
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

static void span_json(const struct writer *w, const struct dt_page_item *span) {
    process_of(w, span->process);
    time_of(w, span->begin);
    time_of(w, span->end);
    text_of(w, span->name);
    text_of(w, span->text);
}

static void mark_json(const struct writer *w, const struct dt_page_item *mark) {
    process_of(w, mark->process);
    time_of(w, mark->begin);
    text_of(w, mark->name);
    text_of(w, mark->text);
}

/* The row that a process shares with others of its kind; -1: none. */
static int fold_of(const struct dt_page_lane *lane) {
    bool is_member = lane->fold && lane->fold->lane && lane->fold->lane != lane;

    return is_member ? lane->fold->lane->index : -1;
}

static void exit_json(const struct writer *w, const struct dt_page_item *exit) {
    /* The timeline shows exits of its rows; its ruler shows all crashes. */
    if (exit->process->index < 0 && fold_of(exit->process) < 0 && !exit->kind)
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

static void intervals_json(const struct writer *w, const struct dt_page_lane *lane) {
    int64_t last = w->timeline->begin;

    dt_json_open(w->to, "intervals", '[');
    for (unsigned n = 0; n < dt_page_lane_size(lane); n++) {
        const struct dt_page_interval *of =
            &g_array_index(lane->intervals, struct dt_page_interval, n);

        number(w, of->begin - last);
        number(w, of->end - of->begin);
        number(w, of->state);
        text_of(w, dt_page_strings_text(w->timeline->functions, of->text));
        number(w, of->extra);
        last = of->end;
    }
    dt_json_close(w->to, ']');
}

/* A row of several processes, with its own name. */
static void fold_json(const struct writer *w, const struct dt_page_lane *lane) {
    const struct dt_page_fold *fold = lane->fold;
    g_autofree char *show = dt_page_fold_show(fold);

    dt_json_open(w->to, NULL, '{');
    dt_json_text(w->to, "show", show);
    dt_json_number(w->to, "members", fold->members);
    dt_json_boolean(w->to, "row", true);
    dt_json_text(w->to, "kind", dt_kind_names[lane->actor->kind]);
    dt_json_text(w->to, "node", dt_actor_node(lane->actor));
    dt_json_text(w->to, "group", lane->actor->group);
    time_json(w, "began", fold->began);
    time_json(w, "ended", fold->ended);
    intervals_json(w, lane);
    dt_json_close(w->to, '}');
}

/* Processes without a row, not even one to unfold, have only their names. */
static void process_json(const struct writer *w, const struct dt_page_lane *lane, bool has_row) {
    const struct dt_actor *actor = lane->actor;

    if (dt_page_is_fold(lane)) {
        fold_json(w, lane);
        return;
    }
    dt_json_open(w->to, NULL, '{');
    dt_json_number(w->to, "number", (int64_t)actor->number);
    dt_json_text(w->to, "pid", actor->pid);
    dt_json_text(w->to, "show", actor->show);
    if (fold_of(lane) >= 0)
        dt_json_number(w->to, "fold", fold_of(lane));
    if (has_row) {
        dt_json_boolean(w->to, "row", true);
        dt_json_text(w->to, "kind", dt_kind_names[actor->kind]);
        dt_json_text(w->to, "node", dt_actor_node(actor));
        dt_json_text(w->to, "name", actor->name);
        dt_json_text(w->to, "group", actor->group);
        time_json(w, "began", actor->began);
        time_json(w, "ended", actor->ended);
        intervals_json(w, lane);
    }
    dt_json_close(w->to, '}');
}

static void summary_json(const struct writer *w, const GPtrArray *rows, const GPtrArray *unfolded) {
    const struct dt_page_timeline *timeline = w->timeline;
    uint64_t seen = 0, kept = 0, merged = 0, folds = 0, folded = 0;

    for (unsigned n = 0; n < rows->len; n++) {
        const struct dt_page_lane *lane = g_ptr_array_index(rows, n);

        seen += lane->intervals_seen;
        kept += dt_page_lane_size(lane);
        merged += lane->merged;
        folds += dt_page_is_fold(lane);
        folded += dt_page_is_fold(lane) ? lane->fold->members : 0;
    }
    for (unsigned n = 0; n < unfolded->len; n++)
        kept += dt_page_lane_size(g_ptr_array_index(unfolded, n));
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"processes", dt_page_lanes_seen(timeline->lanes)},
        {"rows", rows->len},
        {"rows_most", timeline->rows_most},
        {"folds", folds},
        {"folded", folded},
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

void dt_page_timeline_json(struct dt_page_timeline *timeline, GString *to) {
    const GPtrArray *rows = dt_page_lanes_rows(timeline->lanes);
    const GPtrArray *unfolded = dt_page_lanes_unfolded(timeline->lanes);
    struct writer w = {
        .timeline = timeline,
        .to = to,
        .processes = g_ptr_array_new(),
        .strings = dt_page_strings_new(UINT32_MAX),
    };

    if (timeline->begin > timeline->end)
        timeline->begin = timeline->end = 0;
    for (unsigned n = 0; n < rows->len; n++)
        index_of(&w, g_ptr_array_index(rows, n));
    for (unsigned n = 0; n < unfolded->len; n++)
        index_of(&w, g_ptr_array_index(unfolded, n));
    g_autofree char *begin = g_strdup_printf("%" PRId64, timeline->begin);
    dt_json_open(to, NULL, '{');
    /* As text: JavaScript numbers are not exact enough. */
    dt_json_text(to, "begin", begin);
    dt_json_number(to, "length", timeline->end - timeline->begin);
    messages_json(&w);
    items_json(&w, "calls", &timeline->calls, call_json);
    items_json(&w, "spans", &timeline->spans, span_json);
    items_json(&w, "marks", &timeline->marks, mark_json);
    items_json(&w, "exits", &timeline->exits, exit_json);
    lost_json(&w);
    /* Last, because the lists above add processes and texts. */
    dt_json_open(to, "processes", '[');
    for (unsigned n = 0; n < w.processes->len; n++)
        process_json(&w, g_ptr_array_index(w.processes, n), n < rows->len + unfolded->len);
    dt_json_close(to, ']');
    dt_page_strings_json(w.strings, to);
    summary_json(&w, rows, unfolded);
    dt_json_close(to, '}');
    g_ptr_array_free(w.processes, true);
    dt_page_strings_free(w.strings);
}
