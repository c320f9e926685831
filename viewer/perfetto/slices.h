/* The data of the sink, and functions that begin and end slices. */
#pragma once

#include "perfetto/tracks.h"

struct dt_perfetto {
    struct dt_packets *packets;
    struct dt_tracks *tracks;
    GHashTable *runs; /* struct dt_scheduler -> struct dt_thin */
    bool has_messages, has_waiting, has_text;
    bool has_clock;
    uint64_t last_flow, last_correlation;
};

/* Leaves the event open for arguments. */
void dt_perfetto_begin_slice(struct dt_perfetto *s, uint64_t track, int64_t time,
                             enum dt_category category, uint64_t name);
void dt_perfetto_end_slice(struct dt_perfetto *s, uint64_t track, int64_t time);
