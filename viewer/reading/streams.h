/* Streams of traces: the host, process, CPU and clock of their events. */
#pragma once

#include "reading/clocks.h"
#include "shared/model_events.h"

struct dt_stream {
    const bt_stream *stream;
    uint64_t trace;
    bool has_deliveries, has_lives; /* of the trace */
    bool has_clock;                 /* its events have times */
    const struct dt_clock *clock;
    int64_t cpu, vpid;
    char *hostname, *procname;
    char *name;
    int64_t last; /* time of the packet's last event, or of its begin */
    bool has_lost_events, has_lost_packets;
    struct dt_lost events, packets; /* losses that are not yet reported */
};

struct dt_streams;

struct dt_streams *dt_streams_new(struct dt_clocks *clocks);
void dt_streams_free(struct dt_streams *streams);

struct dt_stream *dt_stream_of(struct dt_streams *streams, const bt_stream *stream);
/* A packet belongs to one CPU. */
void dt_stream_read_cpu(struct dt_stream *stream, const bt_packet *packet);
/* Forgets a stream that ends, because a later one may have the same address. */
void dt_stream_end(struct dt_streams *streams, const bt_stream *stream);

/* Reads the corrected time; returns false if it is out of range. */
bool dt_stream_read_time(const struct dt_stream *stream, const bt_clock_snapshot *snapshot,
                         int64_t *time);
/* The corrected time; DT_NO_VALUE if it is out of range. */
int64_t dt_stream_time(const struct dt_stream *stream, const bt_clock_snapshot *snapshot);
