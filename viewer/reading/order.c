/*
 * Messages of one clock arrive in order. There is a queue for each clock, and the earliest head of
 * all queues is the next message.
 */
#include "reading/order.h"

#include <glib.h>

enum {
    /* Beyond this number of messages, the earliest leaves, even if an earlier one may follow. */
    WAITING_MAX = 200000,
};

struct waiting {
    int64_t time; /* corrected */
    uint64_t number;
    const bt_message *message;
};

struct dt_order {
    struct dt_clocks *clocks;
    void (*next)(void *data, const bt_message *message);
    void *data;
    GQueue *queues; /* by the clock's number */
    unsigned queue_count;
    unsigned waiting;
    int64_t now; /* time of the last message, by its own clock */
    int64_t least_offset;
    uint64_t number;
};

struct dt_order *dt_order_new(struct dt_clocks *clocks,
                              void (*next)(void *data, const bt_message *message), void *data) {
    struct dt_order *o = g_new0(struct dt_order, 1);

    o->clocks = clocks;
    o->next = next;
    o->data = data;
    o->now = INT64_MIN / 2;
    o->queue_count = dt_clocks_count(clocks);
    o->queues = g_new0(GQueue, o->queue_count);
    o->least_offset = INT64_MAX;
    for (unsigned i = 0; i < o->queue_count; i++)
        o->least_offset = MIN(o->least_offset, dt_clocks_nth(clocks, i)->offset);
    return o;
}

/* -- Messages ----------------------------------------------------------------------- */

static const bt_stream *stream_of(const bt_message *m) {
    switch (bt_message_get_type(m)) {
    case BT_MESSAGE_TYPE_EVENT:
        return bt_event_borrow_stream_const(bt_message_event_borrow_event_const(m));
    case BT_MESSAGE_TYPE_PACKET_BEGINNING:
        return bt_packet_borrow_stream_const(bt_message_packet_beginning_borrow_packet_const(m));
    case BT_MESSAGE_TYPE_PACKET_END:
        return bt_packet_borrow_stream_const(bt_message_packet_end_borrow_packet_const(m));
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        return bt_message_discarded_events_borrow_stream_const(m);
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        return bt_message_discarded_packets_borrow_stream_const(m);
    case BT_MESSAGE_TYPE_STREAM_BEGINNING:
        return bt_message_stream_beginning_borrow_stream_const(m);
    case BT_MESSAGE_TYPE_STREAM_END:
        return bt_message_stream_end_borrow_stream_const(m);
    default:
        return NULL;
    }
}

/* Messages other than events get the time of the last event. */
static void set_now(struct dt_order *o, const bt_message *m) {
    int64_t time;

    if (bt_message_get_type(m) == BT_MESSAGE_TYPE_EVENT &&
        bt_stream_class_borrow_default_clock_class_const(
            bt_stream_borrow_class_const(stream_of(m))) &&
        bt_clock_snapshot_get_ns_from_origin(
            bt_message_event_borrow_default_clock_snapshot_const(m), &time) ==
            BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
        o->now = CLAMP(time, o->now, INT64_MAX / 2);
}

/* -- Queues ------------------------------------------------------------------------- */

static bool is_before(const struct waiting *a, const struct waiting *b) {
    return !b || a->time < b->time || (a->time == b->time && a->number < b->number);
}

static GQueue *earliest(struct dt_order *o) {
    const struct waiting *best = NULL;
    GQueue *found = NULL;

    for (unsigned i = 0; i < o->queue_count; i++) {
        const struct waiting *w = g_queue_peek_head(&o->queues[i]);

        if (w && is_before(w, best)) {
            best = w;
            found = &o->queues[i];
        }
    }
    return found;
}

static void leave(struct dt_order *o, GQueue *queue) {
    struct waiting *w = g_queue_pop_head(queue);

    o->waiting--;
    o->next(o->data, w->message);
    g_free(w);
}

/* Passes on the messages up to `time`, because no earlier message can follow. */
static void leave_until(struct dt_order *o, int64_t time) {
    GQueue *queue;

    while ((queue = earliest(o)) &&
           (o->waiting > WAITING_MAX || ((struct waiting *)g_queue_peek_head(queue))->time <= time))
        leave(o, queue);
}

void dt_order_add(struct dt_order *o, const bt_message *m) {
    const bt_stream *stream = stream_of(m);
    const struct dt_clock *clock = stream ? dt_clocks_of(o->clocks, stream) : NULL;
    struct waiting *w;

    set_now(o, m);
    /* The clock of a trace that began later, in a live recording. */
    if (!clock || clock->number >= o->queue_count) {
        o->next(o->data, m);
        return;
    }
    w = g_new(struct waiting, 1);
    *w = (struct waiting){o->now + clock->offset, o->number++, m};
    g_queue_push_tail(&o->queues[clock->number], w);
    o->waiting++;
    leave_until(o, o->now + o->least_offset);
}

void dt_order_end(struct dt_order *o) {
    leave_until(o, INT64_MAX);
}

void dt_order_free(struct dt_order *o) {
    if (!o)
        return;
    for (unsigned i = 0; i < o->queue_count; i++) {
        struct waiting *w;

        while ((w = g_queue_pop_head(&o->queues[i]))) {
            bt_message_put_ref(w->message);
            g_free(w);
        }
    }
    g_free(o->queues);
    g_free(o);
}
