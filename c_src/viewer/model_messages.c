/*
 * Messages in flight. Each is in the list of its receiver, if that is known, and in the node's list
 * by age, whose oldest leave first when there are too many.
 *
 * A message to another recorded node is among those of that node, since its delivery is told there.
 * No tracer tells who of another node has sent what is delivered, so such a message is found by its
 * text. If it has a token, it was delivered then, but is told only when seq_trace_receive says
 * which one it was.
 */
#include <string.h>

#include "viewer/model_messages.h"
#include "viewer/texts.h"

const char *const dt_matched_names[] = {
    [DT_MATCHED_NOT] = "not",     [DT_MATCHED_SENDER] = "sender", [DT_MATCHED_TOKEN] = "token",
    [DT_MATCHED_ORDER] = "order", [DT_MATCHED_EARLY] = "early",
};

enum {
    /* While nothing has been delivered in this node: deliveries may not be recorded at all. */
    IN_FLIGHT_WITHOUT_DELIVERIES = 10000,
    TOKENS_MAX = 10000,
    /* So many messages are searched for that of a seq_trace_send. */
    JUST_SENT = 16,
};

/* Before any event. */
static const int64_t long_ago = INT64_MIN / 4;

/* -- Lists -------------------------------------------------------------------------- */

static struct process *to(const struct message *m) {
    return (struct process *)m->seen.to;
}

static void count_mailbox(struct process *p, int change) {
    p->seen.mailbox += change;
    DT_TELL(p->node->model, mailbox, &p->seen, p->node->model->now);
}

static struct list *list_of(struct message *m) {
    return m->seen.to ? &to(m)->in_flight : &m->home->messages->unaddressed;
}

static void add(struct message *m) {
    struct messages *all = m->home->messages;

    m->older = all->youngest;
    *(m->older ? &m->older->younger : &all->oldest) = m;
    all->youngest = m;
    all->in_flight++;
    dt_in_flight_add(list_of(m), m);
}

static void take_out(struct message *m) {
    struct messages *all = m->home->messages;

    *(m->older ? &m->older->younger : &all->oldest) = m->younger;
    *(m->younger ? &m->younger->older : &all->youngest) = m->older;
    m->younger = m->older = NULL;
    all->in_flight--;
    if (m->arrived == DT_NO_VALUE)
        dt_in_flight_take_out(list_of(m), m);
    if (m->seen.to)
        count_mailbox(to(m), -1);
}

struct message *dt_message_new(struct node *home, struct node *sender_node, struct process *from,
                               struct process *p, const char *text) {
    bool is_far = sender_node != home;
    size_t size = strlen(text) + 1;
    struct message *m = g_malloc0(sizeof *m + size + (is_far ? DT_FAR_KEY : 0));

    memcpy(m->text, text, size);
    m->key = m->text;
    if (is_far) {
        dt_far_key(text, m->text + size);
        m->key = m->text + size;
    }
    m->hash = g_str_hash(m->key);
    m->is_far = is_far;
    m->sender_node = is_far ? sender_node : NULL;
    m->home = home;
    m->arrived = DT_NO_VALUE;
    m->seen = (struct dt_message){.number = ++home->model->messages,
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

void dt_message_end(struct node *node, struct message *m) {
    struct process *from = (struct process *)m->seen.from, *p = to(m);

    if (m->token)
        m->token->message = NULL;
    DT_TELL(node->model, message_gone, &m->seen);
    g_free(m->label);
    g_free(m->to_text);
    g_free(m);
    if (from)
        dt_process_unref(from);
    if (p)
        dt_process_unref(p);
}

static void drop(struct message *m) {
    struct delivery d = {.time = m->arrived, .how = DT_MATCHED_ORDER};

    take_out(m);
    if (m->arrived == DT_NO_VALUE)
        dt_message_end(m->home, m);
    else
        dt_message_deliver(m->home, m, &d);
}

/* -- Sends -------------------------------------------------------------------------- */

static void find_named(struct receiver *found, const char *name) {
    found->process = dt_process_named(found->home, name);
    found->is_dead = !found->process && g_hash_table_contains(found->home->nobody, name);
}

/* {shop,'b@host'} */
static void find_in_node(struct receiver *found, const char *text) {
    struct node *home;
    char *name, *node;

    if (!dt_far_name(text, &name, &node))
        return;
    home = dt_peer_named(found->home, node);
    if (home) {
        found->home = home;
        find_named(found, name);
    }
    g_free(name);
    g_free(node);
}

static struct receiver receiver(struct node *node, const char *text) {
    struct receiver found = {NULL, node, false};
    struct node *home;

    if (dt_is_identifier(text)) {
        found.process = dt_process_anywhere(node, text);
        found.is_dead = found.process && found.process->has_exited;
    } else if (*text == '{') {
        find_in_node(&found, text);
    } else if (*text == '#') {
        found.process = dt_alias(node, text);
        home = dt_home(node, text);
        if (home)
            found.home = home;
    } else {
        find_named(&found, text);
    }
    if (found.process)
        found.home = found.process->node;
    return found;
}

/* The oldest, until there are at most `most`. */
static void drop_oldest(struct node *node, unsigned most) {
    struct message *m = node->messages->oldest, *younger;

    for (; m && node->messages->in_flight > most; m = younger) {
        younger = m->younger;
        drop(m);
    }
}

/* What erlang:port_control/3 or port_call/3 returns: {Port,{control,Value}}. The VM tells it as
   sent, but it comes to no mailbox. */
static bool is_return_of_port(const struct dt_message_send *e) {
    const char *value = e->message;

    if (*e->from != '#' || !dt_skip(&value, "{") || !dt_skip(&value, e->from))
        return false;
    return dt_skip(&value, ",{control,") || dt_skip(&value, ",{call,");
}

static void note_left(struct node *node, const struct process *from, const char *text,
                      bool by_seq_trace) {
    struct left *left = &node->messages->left;

    left->from = from ? &from->seen : NULL;
    left->hash = g_str_hash(text);
    left->time = node->model->now;
    left->by_seq_trace = by_seq_trace;
}

/* Whether this is the second event of a message that has left at once. */
static bool has_left(struct node *node, const struct process *from, const char *text,
                     bool by_seq_trace) {
    struct left *left = &node->messages->left;

    if (left->by_seq_trace == by_seq_trace || left->from != (from ? &from->seen : NULL) ||
        left->hash != g_str_hash(text) || node->model->now - left->time >= DT_ONE_EVENT_NS)
        return false;
    left->time = long_ago;
    return true;
}

/* NULL if it is gone already, or no message. */
static struct message *sent(struct node *node, const struct dt_message_send *e, bool by_seq_trace) {
    struct process *from = dt_process_of(node, e->from);
    struct receiver r = receiver(node, e->to);
    struct messages *all = r.home->messages;
    struct message *m;

    if (from)
        dt_release(from);
    dt_early_told(node);
    if (dt_is_nobody(e->to) || is_return_of_port(e))
        return NULL;
    if (r.home != node && dt_early_sent(node, from, &r, e)) {
        note_left(node, from, e->message, by_seq_trace);
        return NULL;
    }
    m = dt_message_new(r.home, node, from, r.process, e->message);
    m->seen.sent = node->model->now;
    m->seen.is_dead = r.is_dead;
    m->by_seq_trace = by_seq_trace;
    if (r.process && strcmp(r.process->pid, e->to) == 0)
        m->seen.to_text = r.process->pid;
    else
        m->seen.to_text = m->to_text = g_strdup(e->to);
    if (r.is_dead) {
        DT_TELL(node->model, sent, &m->seen);
        dt_message_end(node, m);
        note_left(node, from, e->message, by_seq_trace);
        dt_server_calls_sent(node, from, r.process, e->message);
        return NULL;
    }
    /* There is room for this one. */
    drop_oldest(r.home,
                (all->are_delivered ? DT_MESSAGES_IN_FLIGHT : IN_FLIGHT_WITHOUT_DELIVERIES) - 1);
    add(m);
    DT_TELL(node->model, sent, &m->seen);
    if (r.process)
        count_mailbox(r.process, 1);
    /* To another node it is on its way. */
    if (r.process && r.home == node)
        dt_arrived(r.process);
    dt_server_calls_sent(node, from, r.process, e->message);
    return m;
}

/* -- Deliveries --------------------------------------------------------------------- */

static struct message *find(const struct list *list, const struct delivery *d, bool is_far) {
    struct dt_wanted wanted = {.from = d->from ? &d->from->seen : NULL,
                               .node = d->node,
                               .key = d->text,
                               .is_far = is_far,
                               .time = d->time};
    char key[DT_FAR_KEY];

    if (is_far) {
        dt_far_key(d->text, key);
        wanted.key = key;
    }
    return dt_in_flight_find(list, &wanted);
}

static bool is_from_here(const struct delivery *d) {
    return d->from && d->from->node == d->to->node;
}

/* Of this node first, unless it is known to be from another one. */
static struct message *find_any(const struct list *list, const struct delivery *d) {
    struct message *m = d->node ? NULL : find(list, d, false);

    return m || is_from_here(d) ? m : find(list, d, true);
}

/* Signals between two processes stay in order, so what the same sender sent before is lost. */
static void drop_earlier(const struct list *list, const struct message *m) {
    struct message *earlier;

    while (m->seen.from && (earlier = dt_in_flight_before(list, m)))
        drop(earlier);
}

/* The message that is delivered; NULL. */
static struct message *find_delivered(struct node *node, const struct delivery *d) {
    struct message *m = find_any(&d->to->in_flight, d);

    /* Sent to a name: now it is known whose. */
    if (!m && (d->from || d->node))
        m = find_any(&node->messages->unaddressed, d);
    if (m)
        drop_earlier(&d->to->in_flight, m);
    return m;
}

static void set_receiver(struct message *m, struct process *p) {
    if (m->seen.to)
        return;
    m->seen.to = &p->seen;
    dt_process_ref(p);
}

/* Its text is as the sender's node wrote it. */
static void tell_server_calls(struct node *node, const struct message *m) {
    dt_server_calls_delivered(m->is_far ? m->sender_node : node, (struct process *)m->seen.from,
                              to(m), m->text);
}

void dt_message_deliver(struct node *node, struct message *m, const struct delivery *d) {
    set_receiver(m, d->to);
    m->seen.delivered = d->time;
    m->seen.matched = d->how;
    DT_TELL(node->model, delivered, &m->seen);
    if (m->arrived == DT_NO_VALUE)
        tell_server_calls(node, m);
    dt_message_end(node, m);
}

/* Which of those with equal texts it is, seq_trace_receive tells. */
static void arrive(struct node *node, struct message *m, const struct delivery *d) {
    bool was_unaddressed = !m->seen.to;

    dt_in_flight_take_out(list_of(m), m);
    m->arrived = d->time;
    set_receiver(m, d->to);
    if (was_unaddressed)
        count_mailbox(d->to, 1);
    tell_server_calls(node, m);
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
    struct delivery told = *d;

    node->messages->are_delivered = true;
    if (!m) {
        dt_arrived(d->to);
        if (d->node)
            dt_early_add(node, d);
        else
            deliver_unmatched(node, d);
        return;
    }
    if (m->is_far)
        dt_arrived(d->to);
    if (m->is_far && m->token && d->how != DT_MATCHED_TOKEN) {
        arrive(node, m, d);
        return;
    }
    if (m->is_far && d->how == DT_MATCHED_SENDER)
        told.how = DT_MATCHED_ORDER;
    take_out(m);
    dt_message_deliver(node, m, &told);
}

/* What a port gets tells who calls it: {<0.90.0>,{command,Data}}. */
static struct process *caller_of_port(struct node *node, const char *text) {
    char pid[64];

    if (!dt_skip(&text, "{") || !dt_take(&text, "<", pid, sizeof pid) || *text != ',')
        return NULL;
    return dt_process_of(node, pid);
}

/* No message_delivery came. */
static void received_alone(struct process *p, const struct held *held) {
    struct messages *all = p->node->messages;
    struct delivery d = {
        .to = p, .text = held->text, .timer = "", .time = held->time, .how = DT_MATCHED_ORDER};
    struct process *caller = p->seen.kind == DT_PORT ? caller_of_port(p->node, held->text) : NULL;

    if (caller && !find(&p->in_flight, &d, false))
        d.from = caller;
    /* The end of a `receive ... after`, unless somebody has sent this. */
    if (strcmp(d.text, "timeout") == 0 && !find_any(&p->in_flight, &d)) {
        dt_server_calls_timeout(p);
        return;
    }
    delivered(p->node, &d);
    all->last_to = p;
    all->last_hash = g_str_hash(d.text);
    all->last_time = d.time;
}

static void received(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_receive *e = &event->fields.message_receive;
    struct process *p = dt_process_of(node, e->to);

    node->messages->have_receives = true;
    if (!p || p->has_exited)
        return;
    dt_hold(p, event->time, e->message, "", received_alone);
    if (p->seen.kind == DT_PORT || !node->messages->have_senders)
        dt_release(p);
}

/* The first one comes when its message_receive has been told. */
static bool is_told(const struct messages *all, const struct delivery *d) {
    return !all->have_senders && all->last_to == d->to && all->last_hash == g_str_hash(d->text) &&
           d->time - all->last_time < DT_ONE_EVENT_NS;
}

static void delivery(struct node *node, const struct dt_recorded *event) {
    const struct dt_message_delivery *e = &event->fields.message_delivery;
    struct messages *all = node->messages;
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = dt_process_of(node, e->from),
                         .node = *e->from ? NULL : dt_peer_named(node, e->node),
                         .text = e->message,
                         .timer = *e->from ? "" : e->node,
                         .time = event->time,
                         .how = DT_MATCHED_SENDER};
    bool has_been_told = is_told(all, &d);

    all->have_receives = all->have_senders = true;
    if (!d.to || d.to->has_exited || has_been_told)
        return;
    if (!dt_unhold(d.to, d.text, received_alone, &d.time))
        dt_release(d.to);
    /* The end of a `receive ... after`; a timer whose message is this atom looks the same. */
    if (strcmp(d.timer, "clock_service") == 0 && strcmp(d.text, "timeout") == 0)
        dt_server_calls_timeout(d.to);
    else
        delivered(node, &d);
}

/* -- Sequential tracing ------------------------------------------------------------- */

static guint hash_token(gconstpointer data) {
    const struct token *token = data;

    return g_str_hash(token->label) ^ (guint)token->serial ^ (guint)token->from << 16;
}

static gboolean equal_tokens(gconstpointer a, gconstpointer b) {
    const struct token *x = a, *y = b;

    return x->serial == y->serial && x->from == y->from && strcmp(x->label, y->label) == 0;
}

static void free_token(gpointer data) {
    struct token *token = data;

    if (token->message)
        token->message->token = NULL;
    g_free(token->label);
    g_free(token);
}

static void remove_token(struct messages *all, struct token *token) {
    g_queue_delete_link(&all->tokens_by_age, token->link);
    g_hash_table_remove(all->tokens, token);
}

static void add_token(struct message *m, const char *label, uint64_t serial) {
    struct messages *all = m->home->messages;
    struct token *token = g_new0(struct token, 1), *former;

    token->serial = serial;
    token->from = m->seen.from ? m->seen.from->number : 0;
    token->label = g_strdup(label);
    token->message = m;
    m->token = token;
    m->seen.label = m->label = g_strdup(label);
    /* A counter may start anew: the later one is meant. */
    former = g_hash_table_lookup(all->tokens, token);
    if (former)
        remove_token(all, former);
    g_hash_table_add(all->tokens, token);
    g_queue_push_tail(&all->tokens_by_age, token);
    token->link = all->tokens_by_age.tail;
    if (all->tokens_by_age.length > TOKENS_MAX)
        remove_token(all, g_queue_peek_head(&all->tokens_by_age));
}

/* The message of which the other event, message_send or seq_trace_send, has come; NULL. */
static struct message *just_sent(struct node *node, const struct dt_message_send *e,
                                 bool by_seq_trace) {
    const struct process *from = dt_process_of(node, e->from);
    struct message *m = receiver(node, e->to).home->messages->youngest;

    for (unsigned n = 0; m && n < JUST_SENT; m = m->older, n++)
        if (m->seen.from == (from ? &from->seen : NULL) && m->by_seq_trace != by_seq_trace &&
            !m->label == by_seq_trace && strcmp(m->text, e->message) == 0 &&
            strcmp(m->seen.to_text, e->to) == 0)
            return m;
    return NULL;
}

/* With a token, seq_trace_send has come: up to now it comes first. */
static void message_sent(struct node *node, const struct dt_message_send *e) {
    struct message *m = node->messages->have_tokens ? just_sent(node, e, false) : NULL;

    if (m && node->model->now - m->seen.sent < DT_ONE_EVENT_NS)
        m->by_seq_trace = false;
    else if (!node->messages->have_tokens ||
             !has_left(node, dt_process_of(node, e->from), e->message, false))
        sent(node, e, false);
}

static void label_left(struct node *node, const char *label) {
    struct message *m = node->messages->left.message;

    if (m && !m->label)
        m->seen.label = m->label = g_strdup(label);
}

static void seq_sent(struct node *node, const struct dt_seq_trace_send *e) {
    const struct dt_message_send plain = {.from = e->from, .to = e->to, .message = e->message};
    struct message *m = just_sent(node, &plain, true);

    node->messages->have_tokens = true;
    if (!m && has_left(node, dt_process_of(node, e->from), e->message, true)) {
        label_left(node, e->label);
        dt_early_told(node);
        return;
    }
    if (!m)
        m = sent(node, &plain, true);
    if (m)
        add_token(m, e->label, e->current);
    else
        label_left(node, e->label);
}

static void seq_received(struct node *node, const struct dt_seq_trace_receive *e) {
    struct messages *all = node->messages;
    struct process *from = dt_process_anywhere(node, e->from);
    struct token wanted = {
        .serial = e->current, .from = from ? from->seen.number : 0, .label = (char *)e->label};
    struct token *token = g_hash_table_lookup(all->tokens, &wanted);
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = from,
                         .node = from && from->node != node ? from->node : NULL,
                         .text = e->message,
                         .timer = "",
                         .time = node->model->now,
                         .how = DT_MATCHED_TOKEN};

    if (!d.to || d.to->has_exited)
        return;
    dt_release(d.to);
    if (!token) {
        /* It was sent before the recording; its delivery was told, if deliveries are recorded. */
        if (!all->have_receives)
            delivered(node, &d);
    } else if (token->message) {
        struct message *m = token->message;

        if (m->arrived != DT_NO_VALUE)
            d.time = m->arrived;
        take_out(m);
        dt_message_deliver(node, m, &d);
    }
}

/* -- Events ------------------------------------------------------------------------- */

void dt_messages_event(struct node *node, const struct dt_recorded *event) {
    switch (event->probe) {
    case DT_message_send:
        message_sent(node, &event->fields.message_send);
        break;
    case DT_message_receive:
        received(node, event);
        break;
    case DT_message_delivery:
        delivery(node, event);
        break;
    case DT_seq_trace_send:
        seq_sent(node, &event->fields.seq_trace_send);
        break;
    case DT_seq_trace_receive:
        seq_received(node, &event->fields.seq_trace_receive);
        break;
    default:
        break;
    }
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_messages_new(struct node *node) {
    node->messages = g_new0(struct messages, 1);
    node->messages->left.time = long_ago;
    node->messages->tokens = g_hash_table_new_full(hash_token, equal_tokens, free_token, NULL);
}

void dt_messages_late(struct node *node, int64_t now) {
    if (now - node->messages->left.time >= DT_ONE_EVENT_NS)
        dt_early_told(node);
    dt_early_late(node, now);
}

void dt_messages_end(struct node *node) {
    dt_early_told(node);
    dt_early_late(node, INT64_MAX);
    drop_oldest(node, 0);
}

/* What was in flight may have been delivered meanwhile. */
void dt_messages_lost(struct node *node) {
    dt_messages_end(node);
}

void dt_messages_free(struct node *node) {
    g_queue_clear(&node->messages->tokens_by_age);
    g_hash_table_destroy(node->messages->tokens);
    g_free(node->messages);
}
