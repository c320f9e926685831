#include "model/parts/messages/in_flight.h"

/* The limit of messages in flight before the first delivery in this node: possibly neither
   deliveries nor scheduling are recorded. */
enum { WITHOUT_DELIVERIES = 10000 };

/* Of a node. */
struct in_flight {
    struct message *oldest, *youngest;
    struct list unaddressed;
    unsigned count;
    bool are_delivered; /* a message has been delivered */
};

struct list *dt_in_flight_to(struct process *p) {
    if (!p->in_flight)
        p->in_flight = g_new0(struct list, 1);
    return p->in_flight;
}

struct list *dt_in_flight_unaddressed(const struct node *node) {
    return &node->in_flight->unaddressed;
}

struct message *dt_in_flight_youngest(const struct node *node) {
    return node->in_flight->youngest;
}

void dt_in_flight_delivered(struct node *node) {
    node->in_flight->are_delivered = true;
}

void dt_mailbox_changed(struct process *p, int by) {
    p->seen.mailbox += by;
    DT_EMIT(p->node->world, mailbox, &p->seen, p->node->world->now);
}

static struct list *list_of(struct message *m) {
    return m->seen.to ? dt_in_flight_to(dt_receiver(m)) : dt_in_flight_unaddressed(m->home);
}

void dt_in_flight_add(struct message *m) {
    struct in_flight *all = m->home->in_flight;

    m->older = all->youngest;
    *(m->older ? &m->older->younger : &all->oldest) = m;
    all->youngest = m;
    all->count++;
    dt_message_list_add(list_of(m), m);
}

void dt_in_flight_take_out(struct message *m) {
    struct in_flight *all = m->home->in_flight;

    *(m->older ? &m->older->younger : &all->oldest) = m->younger;
    *(m->younger ? &m->younger->older : &all->youngest) = m->older;
    m->younger = m->older = NULL;
    all->count--;
    if (m->arrived == DT_NO_VALUE)
        dt_message_list_take_out(list_of(m), m);
    if (m->is_counted)
        dt_mailbox_changed(dt_receiver(m), -1);
}

void dt_in_flight_drop(struct message *m) {
    struct delivery d = {.time = m->arrived, .how = DT_MATCHED_ORDER};

    dt_in_flight_take_out(m);
    if (m->arrived == DT_NO_VALUE && m->ran != DT_NO_VALUE) {
        d = (struct delivery){.time = m->ran, .how = DT_MATCHED_RAN};
        m->arrived = m->ran;
    }
    if (m->arrived == DT_NO_VALUE)
        dt_message_end(m->home, m);
    else
        dt_message_deliver(m->home, m, &d);
}

void dt_in_flight_arrive(struct message *m, const struct delivery *d) {
    bool was_unaddressed = !m->seen.to;

    dt_message_list_take_out(list_of(m), m);
    m->arrived = d->time;
    dt_message_address(m, d->to);
    if (was_unaddressed) {
        m->is_counted = true;
        dt_mailbox_changed(d->to, 1);
    }
    dt_message_emit(d->to->node, m, !was_unaddressed);
}

/* Drops the oldest messages until there are at most `most`. */
static void drop_oldest(struct node *node, unsigned most) {
    const struct in_flight *all = node->in_flight;
    struct message *m = all->oldest, *younger;

    for (; m && all->count > most; m = younger) {
        younger = m->younger;
        dt_in_flight_drop(m);
    }
}

void dt_in_flight_drop_all(struct node *node) {
    drop_oldest(node, 0);
}

void dt_in_flight_make_room(struct node *node) {
    drop_oldest(node,
                (node->in_flight->are_delivered ? DT_MESSAGES_IN_FLIGHT : WITHOUT_DELIVERIES) - 1);
}

void dt_in_flight_new(struct node *node) {
    node->in_flight = g_new0(struct in_flight, 1);
}

void dt_in_flight_free(struct node *node) {
    g_free(node->in_flight);
}
