#include "model/parts/messages/deliveries.h"

#include <string.h>

#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "model/parts/held_events.h"
#include "model/parts/messages/early_deliveries.h"
#include "model/parts/messages/in_flight.h"
#include "model/parts/messages/tokens.h"
#include "shared/remote_ids.h"
#include "shared/texts.h"

struct deliveries {
    bool have_receives; /* message_receive or message_delivery is recorded */
    bool have_senders;  /* message_delivery to processes is recorded */
    bool have_tokens;   /* seq_trace_receive is recorded */
};

/* -- Matching ----------------------------------------------------------------------- */

static struct message *find(const struct list *list, const struct delivery *d, bool is_remote) {
    struct dt_wanted wanted = {.from = d->from ? &d->from->seen : NULL,
                               .node = d->node,
                               .key = d->text,
                               .is_remote = is_remote,
                               .time = d->time};
    char key[DT_REMOTE_KEY];

    if (is_remote) {
        dt_remote_key(d->text, key);
        wanted.key = key;
    }
    return dt_message_list_find(list, &wanted);
}

static bool is_from_here(const struct delivery *d) {
    return d->from && d->from->node == d->to->node;
}

/* Searches messages of this node first, unless the sender is known to be in another node. */
static struct message *find_any(const struct list *list, const struct delivery *d) {
    struct message *m = d->node ? NULL : find(list, d, false);

    return m || is_from_here(d) ? m : find(list, d, true);
}

/* Signals between two processes stay in order, so the deliveries of earlier messages of this sender
   were lost. */
static void drop_earlier(const struct list *list, const struct message *m) {
    struct message *earlier;

    while (m->seen.from && (earlier = dt_message_list_before(list, m)))
        dt_in_flight_drop(earlier);
}

/* The message that is delivered; NULL if unknown. */
static struct message *find_delivered(struct node *node, const struct delivery *d) {
    struct message *m = find_any(dt_in_flight_to(d->to), d);

    /* It was sent to a name, whose process is now known. */
    if (!m && (d->from || d->node))
        m = find_any(dt_in_flight_unaddressed(node), d);
    if (m)
        drop_earlier(dt_in_flight_to(d->to), m);
    return m;
}

static void deliver_unmatched(struct node *node, const struct delivery *d) {
    struct message *m = dt_message_new(node, node, d->from, d->to, d->text);
    struct delivery unmatched = *d;

    m->seen.timer = d->timer;
    unmatched.how = DT_MATCHED_NOT;
    dt_message_deliver(node, m, &unmatched);
}

static void delivered(struct node *node, const struct delivery *d) {
    bool is_timer = *d->timer && !d->node;
    struct message *m = is_timer ? NULL : find_delivered(node, d);
    struct delivery matched = *d;

    dt_in_flight_delivered(node);
    if (!m) {
        DT_RUN_HOOKS(node->world, arrived, d->to);
        if (d->node)
            dt_early_add(node, d);
        else
            deliver_unmatched(node, d);
        return;
    }
    if (m->is_remote)
        DT_RUN_HOOKS(node->world, arrived, d->to);
    if (m->is_remote && m->token && d->how != DT_MATCHED_TOKEN) {
        dt_in_flight_arrive(m, d);
        return;
    }
    if (m->is_remote && d->how == DT_MATCHED_SENDER)
        matched.how = DT_MATCHED_ORDER;
    dt_in_flight_take_out(m);
    dt_message_deliver(node, m, &matched);
}

/* A message to a port names the calling process: {<0.90.0>,{command,Data}}. */
static struct process *caller_of_port(struct node *node, const char *text) {
    char pid[64];

    if (!dt_skip(&text, "{") || !dt_take(&text, "<", pid, sizeof pid) || *text != ',')
        return NULL;
    return dt_process_of(node, pid);
}

/* A message_receive without a message_delivery. */
static void received_alone(struct process *p, const struct held *held) {
    struct delivery d = {
        .to = p, .text = held->text, .timer = "", .time = held->time, .how = DT_MATCHED_ORDER};
    struct process *caller = p->seen.kind == DT_PORT ? caller_of_port(p->node, held->text) : NULL;

    if (caller && !find(dt_in_flight_to(p), &d, false))
        d.from = caller;
    /* The end of a `receive ... after`, unless a process has sent this text. */
    if (strcmp(d.text, "timeout") == 0 && !find_any(dt_in_flight_to(p), &d)) {
        DT_RUN_HOOKS(p->node->world, timed_out, p);
        return;
    }
    delivered(p->node, &d);
    p->received.text_hash = g_str_hash(d.text);
    p->received.time = d.time;
}

/* Also sets `has_deliveries`, because a live session may have enabled this event after others. */
static void are_recorded(struct node *node) {
    node->seen.has_deliveries = true;
    node->deliveries->have_receives = true;
}

void dt_message_receive(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_receive *e = &event->fields.message_receive;
    struct process *p = dt_process_of(node, e->to);

    are_recorded(node);
    if (!p || p->has_exited)
        return;
    dt_hold(p, event->time, e->message, "", received_alone);
    if (p->seen.kind == DT_PORT || !node->deliveries->have_senders)
        dt_release(p);
}

/* Whether the message_receive of this delivery has already been reported: that of the first
   message_delivery is not held, and those of ports never are. */
static bool is_reported(const struct deliveries *all, const struct delivery *d) {
    bool is_held = all->have_senders && d->to->seen.kind != DT_PORT;

    return !is_held && d->to->received.text_hash == g_str_hash(d->text) &&
           d->time - d->to->received.time < DT_ONE_CALLBACK_NS;
}

void dt_message_delivery(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_delivery *e = &event->fields.message_delivery;
    struct deliveries *all = node->deliveries;
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = dt_process_of(node, e->from),
                         .node = *e->from || !*e->node ? NULL : dt_peer_named(node, e->node),
                         .text = e->message,
                         .timer = *e->from ? "" : e->node,
                         .time = event->time,
                         .how = DT_MATCHED_SENDER};
    bool was_reported = d.to && is_reported(all, &d);

    are_recorded(node);
    if (!d.to || d.to->seen.kind != DT_PORT)
        all->have_senders = true;
    if (!d.to || d.to->has_exited || was_reported)
        return;
    if (!dt_unhold(d.to, d.text, received_alone, &d.time))
        dt_release(d.to);
    /* The end of a `receive ... after`; a timer whose message is this atom looks the same. */
    if (strcmp(d.timer, "clock_service") == 0 && strcmp(d.text, "timeout") == 0)
        DT_RUN_HOOKS(node->world, timed_out, d.to);
    else
        delivered(node, &d);
}

/* A counter may restart, so that a later message has the token of this one. The texts of messages
   from other nodes differ in any case. */
static bool is_of_another(const struct token *token, const struct delivery *d) {
    const struct message *m = token->message;

    return m && !m->is_remote &&
           ((m->seen.to && dt_receiver(m) != d->to) || strcmp(m->text, d->text) != 0);
}

void dt_seq_trace_receive(struct node *node, const struct dt_recorded *event) {
    const struct dt_seq_trace_receive *e = &event->fields.seq_trace_receive;
    struct process *from = dt_process_anywhere(node, e->from);
    const struct token *token = dt_token_find(node, from, e->label, e->current);
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = from,
                         .node = from && from->node != node ? from->node : NULL,
                         .text = e->message,
                         .timer = "",
                         .time = node->world->now,
                         .how = DT_MATCHED_TOKEN};

    node->deliveries->have_tokens = true;
    if (!d.to || d.to->has_exited)
        return;
    dt_release(d.to);
    if (!token || is_of_another(token, &d)) {
        /* Its token is unknown, as if it was sent before the recording. If deliveries are recorded,
         * this one was reported. */
        if (!node->deliveries->have_receives)
            delivered(node, &d);
    } else if (token->message) {
        struct message *m = token->message;

        if (m->arrived != DT_NO_VALUE)
            d.time = m->arrived;
        dt_in_flight_take_out(m);
        dt_message_deliver(node, m, &d);
    }
}

/* -- Without deliveries ------------------------------------------------------------- */

/* The maximum number of messages per receiver that wait for their tokens, because each start and
   stop of the receiver iterates over them. */
enum { AWAITED_MAX = 100 };

/* The latency of a message from another node is unknown: only a token shows its delivery, so a
   message without token is dropped. A token is also exact for messages of this node. */
void dt_deliveries_infer(struct process *to, bool runs) {
    const struct deliveries *all = to->node->deliveries;
    const struct delivery d = {.to = to, .time = to->node->world->now, .how = DT_MATCHED_RAN};
    struct message *m, *next;
    unsigned awaited = 0;

    (void)runs;
    if (to->node->seen.has_deliveries || !to->in_flight)
        return;
    for (m = dt_in_flight_to(to)->first; m; m = next) {
        next = m->next;
        if (m->token && (m->is_remote || all->have_tokens) && awaited++ < AWAITED_MAX) {
            if (!m->is_remote && m->ran == DT_NO_VALUE)
                m->ran = d.time;
            continue;
        }
        if (m->is_remote) {
            dt_in_flight_drop(m);
            continue;
        }
        dt_in_flight_delivered(to->node);
        dt_in_flight_take_out(m);
        dt_message_deliver(to->node, m, &d);
    }
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_deliveries_new(struct node *node) {
    node->deliveries = g_new0(struct deliveries, 1);
}

void dt_deliveries_free(struct node *node) {
    g_free(node->deliveries);
}
