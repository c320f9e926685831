/*
 * Messages in flight. Each is in the list of its receiver, if that is known, and in the node's list
 * by age, whose oldest leave first when there are too many.
 */
#include <string.h>

#include "viewer/model_parts.h"

const char *const dt_matched_names[] = {
    [DT_MATCHED_NOT] = "not",
    [DT_MATCHED_SENDER] = "sender",
    [DT_MATCHED_TOKEN] = "token",
    [DT_MATCHED_ORDER] = "order",
};

enum {
    /* So many messages to one receiver are compared. */
    COMPARED_MAX = 4096,
    /* While nothing has been delivered in this node: deliveries may not be recorded at all. */
    IN_FLIGHT_WITHOUT_DELIVERIES = 10000,
    /* A message_delivery comes this soon after its message_receive. */
    DELIVERY_NS = 100 * 1000,
};

struct message {
    struct dt_message seen;
    struct message *next, *previous; /* to the same receiver */
    struct message *younger, *older;
    guint hash; /* of its text */
    uint64_t serial;
    bool has_token;
    char *label, *to_text;
    char text[];
};

struct messages {
    struct message *oldest, *youngest;
    unsigned in_flight;
    bool are_delivered; /* some were */
    bool have_senders;  /* message_delivery is recorded */
    /* The last message_receive while there was no message_delivery yet. */
    struct process *last_to;
    guint last_hash;
    int64_t last_time;
};

/* -- Lists -------------------------------------------------------------------------- */

static struct process *to(const struct message *m) {
    return (struct process *)m->seen.to;
}

static void count_mailbox(struct process *p, int change) {
    p->seen.mailbox += change;
    DT_TELL(p->node->model, mailbox, &p->seen, p->node->model->now);
}

static void add(struct messages *all, struct message *m) {
    struct process *p = to(m);

    m->older = all->youngest;
    if (m->older)
        m->older->younger = m;
    else
        all->oldest = m;
    all->youngest = m;
    all->in_flight++;
    if (!p)
        return;
    m->previous = p->last;
    if (m->previous)
        m->previous->next = m;
    else
        p->first = m;
    p->last = m;
}

static void take_out(struct messages *all, struct message *m) {
    struct process *p = to(m);

    *(m->older ? &m->older->younger : &all->oldest) = m->younger;
    *(m->younger ? &m->younger->older : &all->youngest) = m->older;
    all->in_flight--;
    if (!p)
        return;
    *(m->previous ? &m->previous->next : &p->first) = m->next;
    *(m->next ? &m->next->previous : &p->last) = m->previous;
    count_mailbox(p, -1);
}

static struct message *new_message(struct node *node, struct process *from, struct process *p,
                                   const char *text) {
    size_t size = strlen(text) + 1;
    struct message *m = g_malloc0(sizeof *m + size);

    memcpy(m->text, text, size);
    m->hash = g_str_hash(text);
    m->seen = (struct dt_message){.number = ++node->model->messages,
                                  .from = from ? &from->seen : NULL,
                                  .to = p ? &p->seen : NULL,
                                  .to_text = "",
                                  .text = m->text,
                                  .label = "",
                                  .timer = "",
                                  .sent = DT_NO_VALUE,
                                  .delivered = DT_NO_VALUE};
    if (from)
        dt_process_ref(from);
    if (p)
        dt_process_ref(p);
    return m;
}

static void end_message(struct node *node, struct message *m) {
    struct process *from = (struct process *)m->seen.from, *p = to(m);

    DT_TELL(node->model, message_gone, &m->seen);
    g_free(m->label);
    g_free(m->to_text);
    g_free(m);
    if (from)
        dt_process_unref(from);
    if (p)
        dt_process_unref(p);
}

static void drop(struct node *node, struct message *m) {
    take_out(node->messages, m);
    end_message(node, m);
}

/* -- Sends -------------------------------------------------------------------------- */

struct receiver {
    struct process *process;
    bool is_dead;
};

static struct receiver receiver(struct node *node, const char *text) {
    struct receiver found = {NULL, false};

    if (dt_is_identifier(text)) {
        found.process = dt_process_of(node, text);
        found.is_dead = found.process && found.process->has_exited;
        return found;
    }
    if (*text == '{' || *text == '#')
        return found;
    found.process = dt_process_named(node, text);
    found.is_dead = !found.process && g_hash_table_contains(node->nobody, text);
    return found;
}

static void sent(struct node *node, const struct dt_message_send *e) {
    struct messages *all = node->messages;
    struct process *from = dt_process_of(node, e->from);
    struct receiver r = receiver(node, e->to);
    struct message *m;

    if (from)
        dt_release(from);
    m = new_message(node, from, r.process, e->message);

    m->seen.sent = node->model->now;
    m->seen.is_dead = r.is_dead;
    if (r.process && strcmp(r.process->pid, e->to) == 0)
        m->seen.to_text = r.process->pid;
    else
        m->seen.to_text = m->to_text = g_strdup(e->to);
    if (r.is_dead) {
        DT_TELL(node->model, sent, &m->seen);
        end_message(node, m);
        return;
    }
    add(all, m);
    DT_TELL(node->model, sent, &m->seen);
    if (r.process) {
        count_mailbox(r.process, 1);
        dt_arrived(r.process);
    }
    while (all->in_flight >
           (all->are_delivered ? DT_MESSAGES_IN_FLIGHT : IN_FLIGHT_WITHOUT_DELIVERIES))
        drop(node, all->oldest);
}

/* -- Deliveries --------------------------------------------------------------------- */

struct delivery {
    struct process *to, *from; /* `from` is NULL if unknown */
    const char *text, *timer;
    int64_t time;
    enum dt_matched how;
};

static struct message *find(const struct delivery *d) {
    guint hash = g_str_hash(d->text);
    struct message *m = d->to->first;

    for (unsigned n = 0; m && n < COMPARED_MAX; m = m->next, n++)
        if (m->hash == hash && (!d->from || m->seen.from == &d->from->seen) &&
            strcmp(m->text, d->text) == 0)
            return m;
    return NULL;
}

/* Signals between two processes stay in order, so what the same sender sent before is lost. */
static void drop_earlier(struct node *node, struct message *m) {
    struct message *earlier = m->previous;

    for (unsigned n = 0; earlier && n < COMPARED_MAX; n++) {
        struct message *before = earlier->previous;

        if (earlier->seen.from == m->seen.from && m->seen.from)
            drop(node, earlier);
        earlier = before;
    }
}

static void delivered(struct node *node, const struct delivery *d) {
    struct message *m = *d->timer ? NULL : find(d);

    node->messages->are_delivered = true;
    if (m) {
        drop_earlier(node, m);
        take_out(node->messages, m);
        m->seen.matched = d->how;
    } else {
        m = new_message(node, d->from, d->to, d->text);
        m->seen.timer = d->timer;
        dt_arrived(d->to);
    }
    m->seen.delivered = d->time;
    DT_TELL(node->model, delivered, &m->seen);
    end_message(node, m);
}

/* No message_delivery came. */
static void received_alone(struct process *p, const struct held *held) {
    struct messages *all = p->node->messages;
    struct delivery d = {
        .to = p, .text = held->text, .timer = "", .time = held->time, .how = DT_MATCHED_ORDER};

    /* The end of a `receive ... after`, unless somebody has sent this. */
    if (strcmp(d.text, "timeout") == 0 && !find(&d))
        return;
    delivered(p->node, &d);
    all->last_to = p;
    all->last_hash = g_str_hash(d.text);
    all->last_time = d.time;
}

static void received(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_receive *e = &event->fields.message_receive;
    struct process *p = dt_process_of(node, e->to);

    if (!p || p->has_exited)
        return;
    dt_hold(p, event->time, e->message, "", received_alone);
    if (p->seen.kind == DT_PORT || !node->messages->have_senders)
        dt_release(p);
}

/* The first one comes when its message_receive has been told. */
static bool is_told(const struct messages *all, const struct delivery *d) {
    return !all->have_senders && all->last_to == d->to && all->last_hash == g_str_hash(d->text) &&
           d->time - all->last_time < DELIVERY_NS;
}

static void delivery(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_delivery *e = &event->fields.message_delivery;
    struct messages *all = node->messages;
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = dt_process_of(node, e->from),
                         .text = e->message,
                         .timer = *e->from ? "" : e->node,
                         .time = event->time,
                         .how = DT_MATCHED_SENDER};
    bool has_been_told = is_told(all, &d);

    all->have_senders = true;
    if (!d.to || d.to->has_exited || has_been_told)
        return;
    if (!dt_unhold(d.to, d.text, received_alone, &d.time))
        dt_release(d.to);
    delivered(node, &d);
}

void dt_messages_event(struct node *node, const struct dt_recorded *event) {
    switch (event->probe) {
    case DT_message_send:
        sent(node, &event->fields.message_send);
        break;
    case DT_message_receive:
        received(node, event);
        break;
    case DT_message_delivery:
        delivery(node, event);
        break;
    default:
        break;
    }
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_messages_new(struct node *node) {
    node->messages = g_new0(struct messages, 1);
}

void dt_messages_end(struct node *node) {
    while (node->messages->oldest)
        drop(node, node->messages->oldest);
}

void dt_messages_free(struct node *node) {
    g_free(node->messages);
}
