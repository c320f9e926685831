/*
 * Messages in flight. Each is in the list of its receiver, if that is known, and in the node's list
 * by age, whose oldest leave first when there are too many.
 */
#include <string.h>

#include "viewer/model_in_flight.h"
#include "viewer/texts.h"

const char *const dt_matched_names[] = {
    [DT_MATCHED_NOT] = "not",
    [DT_MATCHED_SENDER] = "sender",
    [DT_MATCHED_TOKEN] = "token",
    [DT_MATCHED_ORDER] = "order",
};

enum {
    /* While nothing has been delivered in this node: deliveries may not be recorded at all. */
    IN_FLIGHT_WITHOUT_DELIVERIES = 10000,
    TOKENS_MAX = 10000,
    /* So many messages are searched for that of a seq_trace_send. */
    JUST_SENT = 16,
};

/* A message with a sequential trace token, from seq_trace_send to seq_trace_receive, which may be
   the second event of its delivery. */
struct token {
    uint64_t serial;
    char *label;
    struct message *message; /* NULL once it is delivered */
    GList *link;
};

struct messages {
    struct message *oldest, *youngest;
    struct list unaddressed; /* to names and aliases whose process is unknown */
    GHashTable *tokens;      /* struct token, by itself */
    GQueue tokens_by_age;
    unsigned in_flight;
    bool are_delivered; /* some were */
    bool have_receives; /* message_receive or message_delivery is recorded */
    bool have_senders;  /* message_delivery is */
    bool have_tokens;   /* seq_trace_send is */
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

static struct list *list_of(struct messages *all, struct message *m) {
    return m->seen.to ? &to(m)->in_flight : &all->unaddressed;
}

static void add(struct messages *all, struct message *m) {
    m->older = all->youngest;
    *(m->older ? &m->older->younger : &all->oldest) = m;
    all->youngest = m;
    all->in_flight++;
    dt_in_flight_add(list_of(all, m), m);
}

static void take_out(struct messages *all, struct message *m) {
    *(m->older ? &m->older->younger : &all->oldest) = m->younger;
    *(m->younger ? &m->younger->older : &all->youngest) = m->older;
    m->younger = m->older = NULL;
    all->in_flight--;
    dt_in_flight_take_out(list_of(all, m), m);
    if (m->seen.to)
        count_mailbox(to(m), -1);
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
    if (*text == '{')
        return found;
    if (*text == '#') {
        found.process = dt_alias(node, text);
        return found;
    }
    found.process = dt_process_named(node, text);
    found.is_dead = !found.process && g_hash_table_contains(node->nobody, text);
    return found;
}

/* The oldest, until there are at most `most`. */
static void drop_oldest(struct node *node, unsigned most) {
    struct message *m = node->messages->oldest, *younger;

    for (; m && node->messages->in_flight > most; m = younger) {
        younger = m->younger;
        drop(node, m);
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

/* NULL if it is gone already, or no message. */
static struct message *sent(struct node *node, const struct dt_message_send *e) {
    struct messages *all = node->messages;
    struct process *from = dt_process_of(node, e->from);
    struct receiver r = receiver(node, e->to);
    struct message *m;

    if (from)
        dt_release(from);
    if (dt_is_nobody(e->to) || is_return_of_port(e))
        return NULL;
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
        dt_server_calls_sent(node, from, r.process, e->message);
        return NULL;
    }
    /* There is room for this one. */
    drop_oldest(node,
                (all->are_delivered ? DT_MESSAGES_IN_FLIGHT : IN_FLIGHT_WITHOUT_DELIVERIES) - 1);
    add(all, m);
    DT_TELL(node->model, sent, &m->seen);
    if (r.process) {
        count_mailbox(r.process, 1);
        dt_arrived(r.process);
    }
    dt_server_calls_sent(node, from, r.process, e->message);
    return m;
}

/* -- Deliveries --------------------------------------------------------------------- */

struct delivery {
    struct process *to, *from; /* `from` is NULL if unknown */
    const char *text, *timer;
    int64_t time;
    enum dt_matched how;
};

static struct message *find(const struct list *list, const struct delivery *d) {
    return dt_in_flight_find(
        list, &(struct dt_wanted){d->from ? &d->from->seen : NULL, d->text, d->time});
}

/* Signals between two processes stay in order, so what the same sender sent before is lost. */
static void drop_earlier(struct node *node, const struct list *list, const struct message *m) {
    struct message *earlier;

    while (m->seen.from && (earlier = dt_in_flight_before(list, m)))
        drop(node, earlier);
}

/* The message that is delivered, which is in flight no more; NULL. */
static struct message *take(struct node *node, const struct delivery *d) {
    struct messages *all = node->messages;
    struct message *m = find(&d->to->in_flight, d);

    /* Sent to a name: now it is known whose. */
    if (!m && d->from)
        m = find(&all->unaddressed, d);
    if (!m)
        return NULL;
    drop_earlier(node, &d->to->in_flight, m);
    take_out(all, m);
    return m;
}

static void deliver(struct node *node, struct message *m, const struct delivery *d) {
    if (!m->seen.to) {
        m->seen.to = &d->to->seen;
        dt_process_ref(d->to);
    }
    m->seen.delivered = d->time;
    m->seen.matched = d->how;
    DT_TELL(node->model, delivered, &m->seen);
    dt_server_calls_delivered(node, (struct process *)m->seen.from, to(m), m->text);
    end_message(node, m);
}

static void delivered(struct node *node, const struct delivery *d) {
    struct message *m = *d->timer ? NULL : take(node, d);
    struct delivery unmatched = *d;

    node->messages->are_delivered = true;
    if (m) {
        deliver(node, m, d);
        return;
    }
    m = new_message(node, d->from, d->to, d->text);
    m->seen.timer = d->timer;
    unmatched.how = DT_MATCHED_NOT;
    dt_arrived(d->to);
    deliver(node, m, &unmatched);
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

    if (caller && !find(&p->in_flight, &d))
        d.from = caller;
    /* The end of a `receive ... after`, unless somebody has sent this. */
    if (strcmp(d.text, "timeout") == 0 && !find(&p->in_flight, &d)) {
        dt_server_calls_timeout(p->node, p);
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
        dt_server_calls_timeout(node, d.to);
    else
        delivered(node, &d);
}

/* -- Sequential tracing ------------------------------------------------------------- */

static guint hash_token(gconstpointer data) {
    const struct token *token = data;

    return g_str_hash(token->label) ^ (guint)token->serial;
}

static gboolean equal_tokens(gconstpointer a, gconstpointer b) {
    const struct token *x = a, *y = b;

    return x->serial == y->serial && strcmp(x->label, y->label) == 0;
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

static void add_token(struct messages *all, struct message *m, const char *label, uint64_t serial) {
    struct token *token = g_new0(struct token, 1), *former;

    token->serial = serial;
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
                                 bool is_by_seq_trace) {
    const struct process *from = dt_process_of(node, e->from);
    struct message *m = node->messages->youngest;

    for (unsigned n = 0; m && n < JUST_SENT; m = m->older, n++)
        if (m->seen.from == (from ? &from->seen : NULL) && m->is_by_seq_trace == is_by_seq_trace &&
            !m->token == !is_by_seq_trace && strcmp(m->text, e->message) == 0 &&
            strcmp(m->seen.to_text, e->to) == 0)
            return m;
    return NULL;
}

/* Where both are recorded, seq_trace_send comes first. */
static void message_sent(struct node *node, const struct dt_message_send *e) {
    struct message *m = node->messages->have_tokens ? just_sent(node, e, true) : NULL;

    if (m && node->model->now - m->seen.sent < DT_ONE_EVENT_NS)
        m->is_by_seq_trace = false;
    else
        sent(node, e);
}

static void seq_sent(struct node *node, const struct dt_seq_trace_send *e) {
    const struct dt_message_send plain = {.from = e->from, .to = e->to, .message = e->message};
    struct message *m = just_sent(node, &plain, false);

    node->messages->have_tokens = true;
    if (!m && (m = sent(node, &plain)))
        m->is_by_seq_trace = true;
    if (m)
        add_token(node->messages, m, e->label, e->current);
}

static void seq_received(struct node *node, const struct dt_seq_trace_receive *e) {
    struct messages *all = node->messages;
    struct token wanted = {.serial = e->current, .label = (char *)e->label};
    struct token *token = g_hash_table_lookup(all->tokens, &wanted);
    struct delivery d = {.to = dt_process_of(node, e->to),
                         .from = dt_process_of(node, e->from),
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

        take_out(all, m);
        deliver(node, m, &d);
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
    node->messages->tokens = g_hash_table_new_full(hash_token, equal_tokens, free_token, NULL);
}

void dt_messages_end(struct node *node) {
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
