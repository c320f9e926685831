/* Messages as arrows, mailboxes, requests, and gen_server calls. */
#include "perfetto/perfetto_sink.h"

static const char *receiver(struct dt_perfetto *s, const struct dt_message *m) {
    return m->to ? dt_tracks_show(s->tracks, m->to) : m->to_text;
}

/* `is_reported`: an arrow leads here from an event that already has the whole text. */
static void message_instant(struct dt_perfetto *s, const struct dt_message *m,
                            struct dt_process *of, int64_t time, bool is_reported) {
    bool has_text = s->has_text && *m->text;
    uint64_t name = has_text ? 0 : dt_name(s->packets, "message");
    dt_event_begin(s->packets, DT_EVENT_INSTANT, dt_tracks_child(s->tracks, of, DT_CHILD_MESSAGES),
                   time, DT_CATEGORY_message);
    if (has_text)
        dt_event_text(s->packets, "", m->text);
    else
        dt_event_name(s->packets, name);
    if (m->from)
        dt_arg_text(s->packets, DT_ARG_from, dt_tracks_show(s->tracks, m->from));
    dt_arg_text(s->packets, DT_ARG_to, receiver(s, m));
    if (has_text && !is_reported)
        dt_arg_text(s->packets, DT_ARG_text, m->text);
    dt_arg_text(s->packets, DT_ARG_matched, dt_matched_names[m->matched]);
    if (dt_is_inferred(m->matched))
        dt_arg_true(s->packets, DT_ARG_inferred);
    dt_arg_text(s->packets, DT_ARG_label, m->label);
    dt_arg_text(s->packets, DT_ARG_timer, m->timer);
    if (m->is_dead)
        dt_arg_true(s->packets, DT_ARG_dead);
}

static void write_sent(struct dt_perfetto *s, const struct dt_message *m, uint64_t flow) {
    message_instant(s, m, m->from, m->sent, false);
    if (flow)
        dt_event_flow(s->packets, flow);
    dt_event_end(s->packets);
}

void dt_perfetto_delivered(void *data, struct dt_message *m) {
    struct dt_perfetto *s = data;

    if (!s->has_messages || !m->to)
        return;
    bool is_sent = m->from && m->sent != DT_NO_VALUE;
    uint64_t flow = is_sent && m->sent <= m->delivered ? ++s->last_flow : 0;
    if (is_sent)
        write_sent(s, m, flow);
    message_instant(s, m, m->to, m->delivered, flow);
    if (flow) {
        dt_event_flow_end(s->packets, flow);
        dt_arg_int(s->packets, DT_ARG_transit_ns, m->delivered - m->sent);
    }
    dt_event_end(s->packets);
}

/* A slice on the track of the request, as long as the message is in flight. */
static void request_slice(struct dt_perfetto *s, const struct dt_message *m) {
    bool is_whole = m->from && m->to && m->sent != DT_NO_VALUE && m->delivered != DT_NO_VALUE;

    if (!*m->label || !is_whole)
        return;
    int64_t end = MAX(m->sent, m->delivered);
    uint64_t track = dt_tracks_request(s->tracks, m->label, m->sent, end);
    if (!track)
        return;
    g_autofree char *between = g_strdup_printf("%s → %s  ", dt_tracks_show(s->tracks, m->from),
                                               dt_tracks_show(s->tracks, m->to));
    dt_event_begin(s->packets, DT_EVENT_BEGIN, track, m->sent, DT_CATEGORY_request);
    dt_event_text(s->packets, between, s->has_text ? m->text : "");
    dt_arg_text(s->packets, DT_ARG_from, dt_tracks_show(s->tracks, m->from));
    dt_arg_text(s->packets, DT_ARG_to, dt_tracks_show(s->tracks, m->to));
    dt_arg_text(s->packets, DT_ARG_label, m->label);
    dt_arg_text(s->packets, DT_ARG_matched, dt_matched_names[m->matched]);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
}

void dt_perfetto_message_gone(void *data, struct dt_message *m) {
    struct dt_perfetto *s = data;
    bool is_reported = m->to && m->delivered != DT_NO_VALUE;

    if (s->has_messages && !is_reported && m->from && m->sent != DT_NO_VALUE)
        write_sent(s, m, 0);
    if (s->has_messages)
        request_slice(s, m);
}

void dt_perfetto_mailbox(void *data, struct dt_process *process, int64_t time) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, process);

    if (!s->has_messages || shown->last_counted == (int64_t)process->mailbox)
        return;
    shown->last_counted = (int64_t)process->mailbox;
    dt_event_begin(s->packets, DT_EVENT_COUNTER,
                   dt_tracks_child(s->tracks, process, DT_CHILD_MAILBOX), time, DT_CATEGORY_NONE);
    dt_event_value(s->packets, shown->last_counted);
    dt_event_end(s->packets);
}

/* -- Server calls ---------------------------------------------------------------------- */

/* Begins either slice of a server call. The name is the other process and the request. */
static uint64_t begin_server_call(struct dt_perfetto *s, const struct dt_server_call *c,
                                  enum dt_child child, int64_t begin, int64_t end) {
    bool is_caller = child == DT_CHILD_SERVER_CALLS;
    struct dt_process *of = is_caller ? c->caller : c->server;
    const char *other = dt_tracks_show(s->tracks, is_caller ? c->server : c->caller);
    g_autofree char *before = g_strconcat(other, " ", NULL);
    uint64_t track = dt_tracks_lane(s->tracks, of, child, begin, end);
    dt_event_begin(s->packets, DT_EVENT_BEGIN, track, begin, DT_CATEGORY_server_call);
    dt_event_text(s->packets, before, s->has_text ? c->request : "");
    dt_event_correlation(s->packets, s->last_correlation);
    dt_arg_text(s->packets, DT_ARG_caller, dt_tracks_show(s->tracks, c->caller));
    if (s->has_text)
        dt_arg_text(s->packets, DT_ARG_request, c->request);
    return track;
}

void dt_perfetto_server_call(void *data, const struct dt_server_call *c) {
    struct dt_perfetto *s = data;
    bool is_served = c->taken != DT_NO_VALUE && c->outcome == DT_OUTCOME_REPLY &&
                     c->taken >= c->began && c->taken <= c->ended;
    uint64_t flow = is_served ? ++s->last_flow : 0;
    int64_t end = MAX(c->ended, c->began);

    s->last_correlation++;

    uint64_t track = begin_server_call(s, c, DT_CHILD_SERVER_CALLS, c->began, end);
    dt_arg_text(s->packets, DT_ARG_server, dt_tracks_show(s->tracks, c->server));
    dt_arg_text(s->packets, DT_ARG_outcome, dt_outcome_names[c->outcome]);
    if (s->has_text)
        dt_arg_text(s->packets, DT_ARG_reply, c->reply);
    if (c->delivered != DT_NO_VALUE)
        dt_arg_int(s->packets, DT_ARG_delivered_ns, c->delivered - c->began);
    if (is_served) {
        int64_t arrived = c->delivered != DT_NO_VALUE ? c->delivered : c->began;

        dt_arg_int(s->packets, DT_ARG_waited_ns, c->taken - arrived);
        dt_arg_int(s->packets, DT_ARG_served_ns, c->ended - c->taken);
        dt_event_flow(s->packets, flow);
    }
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
    if (!is_served)
        return;

    track = begin_server_call(s, c, DT_CHILD_REQUESTS, c->taken, end);
    dt_event_flow_end(s->packets, flow);
    dt_arg_true(s->packets, DT_ARG_inferred);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, end);
}
