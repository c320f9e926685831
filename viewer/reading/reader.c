#include "reading/reader.h"

#include <glib.h>

#include "reading/classes.h"
#include "reading/streams.h"

struct dt_reader {
    const struct dt_reads *reads;
    void *data;
    struct dt_clocks *clocks;
    struct dt_classes *classes;
    struct dt_streams *streams;
    struct dt_recorded event;
    int64_t now; /* time of the last event, for losses without times */
};

/* -- Events ------------------------------------------------------------------------- */

static struct dt_place place_of(const struct dt_stream *stream) {
    return (struct dt_place){stream->hostname, stream->vpid, stream->trace};
}

/* Events of a stream without a clock have no snapshot to read. */
static bool read_time(const struct dt_stream *stream, const bt_message *message, int64_t *time) {
    return stream->has_clock &&
           dt_stream_read_time(stream,
                               bt_message_event_borrow_default_clock_snapshot_const(message), time);
}

static void read_event(struct dt_reader *r, const bt_message *message) {
    const bt_event *event = bt_message_event_borrow_event_const(message);
    const struct dt_class *class = dt_class_of(r->classes, bt_event_borrow_class_const(event));
    struct dt_stream *stream = dt_stream_of(r->streams, bt_event_borrow_stream_const(event));
    struct dt_recorded *to = &r->event;
    bool has_time = read_time(stream, message, &to->time);

    if (has_time)
        stream->last = to->time;
    if (!class || !has_time) {
        if (r->reads->skip)
            r->reads->skip(r->data);
        return;
    }
    to->place = place_of(stream);
    to->clock = dt_clocks_differ(r->clocks) ? stream->clock : NULL;
    to->cpu = stream->cpu;
    to->vtid = DT_NO_VALUE;
    to->procname = "";
    to->has_deliveries = stream->has_deliveries;
    to->has_lives = stream->has_lives;
    dt_class_read(class, event, to);
    r->now = to->time;
    r->reads->event(r->data, to);
}

/* -- Losses ------------------------------------------------------------------------- */

static void report_loss(struct dt_reader *r, struct dt_stream *stream, struct dt_lost *lost) {
    const struct dt_place place = place_of(stream);

    lost->end = MAX(lost->end, lost->begin);
    g_free(stream->name);
    stream->name = stream->cpu == DT_NO_VALUE ? g_strdup("a stream")
                                              : g_strdup_printf("CPU %" PRId64, stream->cpu);
    lost->stream = stream->name;
    if (r->reads->lost)
        r->reads->lost(r->data, &place, lost);
}

static void report_unsure(struct dt_reader *r, const struct dt_stream *stream,
                          const struct dt_lost *lost) {
    const struct dt_place place = place_of(stream);

    if (r->reads->unsure && lost->end != DT_NO_VALUE)
        r->reads->unsure(r->data, &place, lost->end);
}

static void end_lost_events(struct dt_reader *r, struct dt_stream *stream) {
    if (!stream->has_lost_events)
        return;
    stream->has_lost_events = false;
    stream->events.begin = stream->last == DT_NO_VALUE ? r->now : stream->last;
    report_loss(r, stream, &stream->events);
}

/* A full packet stays open until another packet is free. Events between its last recorded event and
   its end are lost. babeltrace2 reports their number and the packet's end before the packet. */
static void read_lost_events(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_discarded_events_borrow_stream_const(message);
    struct dt_stream *info = dt_stream_of(r->streams, stream);

    info->has_lost_events = true;
    info->events = (struct dt_lost){.end = DT_NO_VALUE};
    if (bt_stream_class_discarded_events_have_default_clock_snapshots(
            bt_stream_borrow_class_const(stream))) {
        info->last = dt_stream_time(
            info,
            bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(message));
        info->events.end = dt_stream_time(
            info, bt_message_discarded_events_borrow_end_default_clock_snapshot_const(message));
        report_unsure(r, info, &info->events);
    }
    if (bt_message_discarded_events_get_count(message, &info->events.count) !=
        BT_PROPERTY_AVAILABILITY_AVAILABLE)
        info->events.count = 0;
    if (!bt_stream_class_supports_packets(bt_stream_borrow_class_const(stream)))
        end_lost_events(r, info);
}

/* A recorder that overwrites its oldest packets loses all events up to the next packet. The number
   of lost events is unknown. */
static void read_lost_packets(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_discarded_packets_borrow_stream_const(message);
    struct dt_stream *info = dt_stream_of(r->streams, stream);
    struct dt_lost *lost = &info->packets;
    struct dt_place place;

    *lost = (struct dt_lost){.begin = DT_NO_VALUE, .end = DT_NO_VALUE};
    if (bt_stream_class_discarded_packets_have_default_clock_snapshots(
            bt_stream_borrow_class_const(stream))) {
        lost->begin = dt_stream_time(
            info,
            bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(message));
        lost->end = dt_stream_time(
            info, bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(message));
    }
    if (lost->begin == DT_NO_VALUE)
        lost->begin = r->now;
    info->has_lost_packets = true;
    report_unsure(r, info, lost);
    place = place_of(info);
    if (r->reads->losing)
        r->reads->losing(r->data, &place, lost->begin);
}

static void end_lost_packets(struct dt_reader *r, struct dt_stream *stream) {
    if (!stream->has_lost_packets)
        return;
    stream->has_lost_packets = false;
    report_loss(r, stream, &stream->packets);
}

/* -- Packets and streams ------------------------------------------------------------ */

static void begin_packet(struct dt_reader *r, const bt_message *message) {
    const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(message);
    const bt_stream *stream = bt_packet_borrow_stream_const(packet);
    struct dt_stream *info = dt_stream_of(r->streams, stream);

    dt_stream_read_cpu(info, packet);
    info->last =
        bt_stream_class_packets_have_beginning_default_clock_snapshot(
            bt_stream_borrow_class_const(stream))
            ? dt_stream_time(
                  info, bt_message_packet_beginning_borrow_default_clock_snapshot_const(message))
            : DT_NO_VALUE;
    if (info->last != DT_NO_VALUE)
        info->packets.end = info->last;
    end_lost_packets(r, info);
}

static void end_packet(struct dt_reader *r, const bt_message *message) {
    const bt_packet *packet = bt_message_packet_end_borrow_packet_const(message);

    end_lost_events(r, dt_stream_of(r->streams, bt_packet_borrow_stream_const(packet)));
}

static void end_stream(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_stream_end_borrow_stream_const(message);
    struct dt_stream *info = dt_stream_of(r->streams, stream);

    end_lost_events(r, info);
    end_lost_packets(r, info);
    dt_stream_end(r->streams, stream);
}

/* -- The reader --------------------------------------------------------------------- */

struct dt_reader *dt_reader_new(const struct dt_reads *reads, void *data,
                                struct dt_clocks *clocks) {
    struct dt_reader *r = g_new0(struct dt_reader, 1);

    r->reads = reads;
    r->data = data;
    r->clocks = clocks;
    r->classes = dt_classes_new();
    r->streams = dt_streams_new(clocks);
    return r;
}

void dt_reader_message(struct dt_reader *r, const bt_message *message) {
    switch (bt_message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        read_event(r, message);
        break;
    case BT_MESSAGE_TYPE_PACKET_BEGINNING:
        begin_packet(r, message);
        break;
    case BT_MESSAGE_TYPE_PACKET_END:
        end_packet(r, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        read_lost_events(r, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        read_lost_packets(r, message);
        break;
    case BT_MESSAGE_TYPE_STREAM_END:
        end_stream(r, message);
        break;
    default:
        break;
    }
}

void dt_reader_free(struct dt_reader *r) {
    if (!r)
        return;
    dt_streams_free(r->streams);
    dt_classes_free(r->classes);
    g_free(r);
}
