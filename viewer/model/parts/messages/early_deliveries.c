#include "model/parts/messages/early_deliveries.h"

#include "model/entities/processes.h"
#include "model/parts/messages/message_list.h"
#include "shared/remote_ids.h"

/* The maximum number of waiting deliveries per node. */
enum { EARLY_MAX = 10000 };

/* How long a delivery waits for its send. */
static const int64_t early_ns = INT64_C(10) * 1000 * 1000 * 1000;

struct early {
    struct list waiting;
    struct message *sent; /* its send was reported last; NULL if none */
};

void dt_early_add(struct node *node, const struct delivery *d) {
    struct list *waiting = &node->early->waiting;
    struct message *m = dt_message_new(node, d->node, d->from, d->to, d->text);

    m->seen.delivered = d->time;
    m->to_text = g_strdup(d->timer);
    dt_message_list_add(waiting, m);
    DT_RUN_HOOKS(node->world, delivered, node, d->from, d->to, d->text, false);
    m->arrived = d->time;
    if (waiting->length > EARLY_MAX)
        dt_early_late(node, waiting->first->arrived + early_ns + 1);
}

/* The delivery of the message that is sent now; NULL if none. Only a delivery by seq_trace_receive
   names its sender. */
static struct message *find(const struct list *early, const struct dt_wanted *sent_now) {
    struct dt_wanted wanted = *sent_now;
    struct message *m = dt_message_list_find(early, &wanted);

    if (m || !wanted.from)
        return m;
    wanted.from = NULL;
    m = dt_message_list_find(early, &wanted);
    return m && !m->seen.from ? m : NULL;
}

bool dt_early_sent(struct node *node, struct process *from, const struct receiver *r,
                   const struct dt_message_send *e) {
    struct list *early = &r->home->early->waiting;
    struct dt_wanted wanted = {.from = from ? &from->seen : NULL,
                               .to = r->process ? &r->process->seen : NULL,
                               .node = node,
                               .is_remote = true,
                               .time = INT64_MAX};
    char key[DT_REMOTE_KEY];
    struct message *m;

    if (!early->first)
        return false;
    dt_remote_key(e->message, key);
    wanted.key = key;
    m = find(early, &wanted);
    if (!m)
        return false;
    dt_message_list_take_out(early, m);
    if (from && !m->seen.from) {
        m->seen.from = &from->seen;
        dt_process_ref(from);
    }
    m->seen.sent = node->world->now;
    m->seen.early = m->seen.sent - m->arrived;
    m->seen.delivered = DT_NO_VALUE;
    g_free(m->to_text);
    m->seen.to_text = m->to_text = g_strdup(e->to);
    DT_EMIT(node->world, sent, &m->seen);
    node->early->sent = m;
    return true;
}

void dt_early_label(struct node *node, const char *label) {
    struct message *m = node->early->sent;

    if (m && !m->label)
        m->seen.label = m->label = g_strdup(label);
}

void dt_early_emit(struct node *node) {
    struct message *m = g_steal_pointer(&node->early->sent);

    if (m)
        dt_message_deliver(
            m->home, m,
            &(struct delivery){.time = m->seen.sent,
                               /* If both times are equal, the order of events means nothing. */
                               .how = m->seen.early ? DT_MATCHED_EARLY : DT_MATCHED_ORDER});
}

void dt_early_late(struct node *node, int64_t now) {
    struct list *early = &node->early->waiting;
    struct message *m;

    while ((m = early->first) && m->arrived < now - early_ns) {
        dt_message_list_take_out(early, m);
        m->seen.timer = m->to_text;
        dt_message_deliver(node, m,
                           &(struct delivery){.time = m->seen.delivered, .how = DT_MATCHED_NOT});
    }
}

void dt_early_end(struct node *node) {
    dt_early_emit(node);
    dt_early_late(node, INT64_MAX);
}

void dt_early_new(struct node *node) {
    node->early = g_new0(struct early, 1);
}

void dt_early_free(struct node *node) {
    g_free(node->early);
}
