#include "model/parts/messages/sends.h"

#include <string.h>

#include "model/entities/processes.h"
#include "model/parts/held_events.h"
#include "model/parts/messages/port_answers.h"
#include "model/parts/messages/deliveries.h"
#include "model/parts/messages/early_deliveries.h"
#include "model/parts/messages/in_flight.h"
#include "model/parts/messages/receiver.h"
#include "model/parts/messages/tokens.h"
#include "shared/texts.h"

/* The number of recent messages that are searched for the one of a second event. */
enum { JUST_SENT = 16 };

/* The VM reports a send with a token by two callbacks, seq_trace_send first. Between them, its
   thread may lose the CPU. Should a release fire seq_trace_send second, it would usually follow
   soon; a later one may be of another message with this text. */
enum { ONE_SEND_NS = 1000 * 1000 * 1000, SOON_NS = 100 * 1000 };

/* Before any event. */
static const int64_t long_ago = INT64_MIN / 4;

struct sends {
    bool have_tokens; /* seq_trace_send is recorded */
    /* The last message that left flight as soon as it was sent: its second event may still
       follow. */
    const struct dt_process *from;
    unsigned hash;
    int64_t time;
    bool by_seq_trace; /* its first event was seq_trace_send, else message_send */
};

static void note_left(struct node *node, const struct process *from, const char *text,
                      bool by_seq_trace) {
    struct sends *left = node->sends;

    left->from = from ? &from->seen : NULL;
    left->hash = g_str_hash(text);
    left->time = node->world->now;
    left->by_seq_trace = by_seq_trace;
}

/* Whether this is the second event of the message of note_left. */
static bool has_left(struct node *node, const struct process *from, const char *text,
                     bool by_seq_trace) {
    struct sends *left = node->sends;
    int64_t most = by_seq_trace ? SOON_NS : ONE_SEND_NS;

    if (left->by_seq_trace == by_seq_trace || left->from != (from ? &from->seen : NULL) ||
        left->hash != g_str_hash(text) || node->world->now - left->time >= most)
        return false;
    left->time = long_ago;
    return true;
}

static struct message *message_of(struct node *node, struct process *from, const struct receiver *r,
                                  const char *to, const char *text) {
    struct message *m = dt_message_new(r->home, node, from, r->process, text);

    m->seen.sent = node->world->now;
    m->seen.is_dead = r->is_dead;
    if (r->process && strcmp(r->process->pid, to) == 0)
        m->seen.to_text = r->process->pid;
    else
        m->seen.to_text = m->to_text = g_strdup(to);
    return m;
}

/* Whether the VM has reported events of this node. Before the first, its deliveries may not be
   traced, and a message to it would seem to be in its mailbox until the end. */
static bool is_traced(const struct node *node) {
    return node->traced != 0;
}

/* Handles the first event of a message. Returns NULL if the message is already gone, or if no
   process receives it. */
static struct message *sent(struct node *node, const struct dt_message_send *e, bool by_seq_trace) {
    struct process *from = dt_process_of(node, e->from);
    struct receiver r = dt_receiver_of(node, e->to);
    const char *text = e->message;
    struct message *m;

    if (from)
        dt_release(from);
    dt_early_emit(node);
    if (from && from->seen.kind == DT_PORT)
        text = dt_answers_text(from, text);
    if (!text || dt_is_no_receiver(e->to))
        return NULL;
    if (r.process && r.process->seen.kind == DT_PORT)
        dt_answers_requested(r.process, text);
    if (r.home != node && dt_early_sent(node, from, &r, e)) {
        note_left(node, from, e->message, by_seq_trace);
        return NULL;
    }
    m = message_of(node, from, &r, e->to, text);
    m->by_seq_trace = by_seq_trace;
    if (r.is_dead) {
        DT_EMIT(node->world, sent, &m->seen);
        dt_message_end(node, m);
        note_left(node, from, e->message, by_seq_trace);
        DT_RUN_HOOKS(node->world, sent, node, from, r.process, text);
        return NULL;
    }
    dt_in_flight_make_room(r.home);
    dt_in_flight_add(m);
    DT_EMIT(node->world, sent, &m->seen);
    m->is_counted = r.process && (r.home == node || is_traced(r.home));
    if (m->is_counted)
        dt_mailbox_changed(r.process, 1);
    /* A message to another node has not yet arrived. */
    if (r.process && r.home == node)
        DT_RUN_HOOKS(node->world, arrived, r.process);
    DT_RUN_HOOKS(node->world, sent, node, from, r.process, text);
    /* A port is assumed to work for its caller at once. */
    if (r.process && r.process->seen.kind == DT_PORT && !r.home->seen.has_deliveries) {
        dt_deliveries_infer(r.process, false);
        note_left(node, from, e->message, by_seq_trace);
        return NULL;
    }
    return m;
}

/* The message whose other event, message_send or seq_trace_send, was recorded before; NULL if none.
 */
static struct message *just_sent(struct node *node, const struct dt_message_send *e,
                                 bool by_seq_trace) {
    const struct process *from = dt_process_of(node, e->from);
    struct message *m = dt_in_flight_youngest(dt_receiver_of(node, e->to).home);

    for (unsigned n = 0; m && n < JUST_SENT; m = m->older, n++)
        if (m->seen.from == (from ? &from->seen : NULL) && m->by_seq_trace != by_seq_trace &&
            !m->label == by_seq_trace && strcmp(m->text, e->message) == 0 &&
            strcmp(m->seen.to_text, e->to) == 0)
            return m;
    return NULL;
}

/* Sockets accepted by listeners, for which the VM fires no port_open: if a listener passes a new
   socket to its acceptor in this message, the port begins, with the listener as its parent. The
   driver of these listeners: */
static const char driver[] = "tcp_inet";

/* {inet_async,#Port<0.12>,25,{ok,#Port<0.55>}} from #Port<0.12> */
static void accepted(struct node *node, const struct dt_message_send *e) {
    const char *at = e->message;
    char listener[64], port[64];

    if (!dt_skip(&at, "{inet_async,") || !dt_take(&at, "#Port<", listener, sizeof listener) ||
        strcmp(listener, e->from) != 0)
        return;
    at = strchr(at, '{');
    if (!at || !dt_skip(&at, "{ok,") || !dt_take(&at, "#Port<", port, sizeof port) ||
        strcmp(at, "}}") != 0)
        return;
    dt_process_create(node, port,
                      &(struct identity){dt_process_of(node, listener), "", driver, ""});
}

/* If the message has a token, its seq_trace_send was recorded before: all OTP releases so far fire
   it first. */
void dt_message_send(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_send *e = &event->fields.message_send;
    struct message *m;

    accepted(node, e);
    m = node->sends->have_tokens ? just_sent(node, e, false) : NULL;
    if (m && node->world->now - m->seen.sent < ONE_SEND_NS)
        m->by_seq_trace = false;
    else if (!node->sends->have_tokens ||
             !has_left(node, dt_process_of(node, e->from), e->message, false))
        sent(node, e, false);
}

void dt_seq_trace_send(struct node *node, const struct dt_recorded *event) {
    const struct dt_seq_trace_send *e = &event->fields.seq_trace_send;
    const struct dt_message_send plain = {.from = e->from, .to = e->to, .message = e->message};
    struct message *m = just_sent(node, &plain, true);

    node->sends->have_tokens = true;
    if (!m && has_left(node, dt_process_of(node, e->from), e->message, true)) {
        dt_early_label(node, e->label);
        dt_early_emit(node);
        return;
    }
    if (!m)
        m = sent(node, &plain, true);
    if (m)
        dt_token_add(m, e->label, e->current);
    else
        dt_early_label(node, e->label);
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_sends_new(struct node *node) {
    struct sends *sends = node->sends = g_new0(struct sends, 1);

    sends->time = long_ago;
}

void dt_sends_free(struct node *node) {
    g_free(node->sends);
}

void dt_sends_late(struct node *node, int64_t now) {
    if (now - node->sends->time >= SOON_NS)
        dt_early_emit(node);
}
