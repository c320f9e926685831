/*
 * Thins out tracks with very many intervals: intervals that are too short to be visible are merged
 * into one slice, which has their number and their total run time.
 *
 * A trace viewer keeps all slices in memory. A process that collects garbage 90,000 times per
 * second would use most of it. So a track keeps its first DT_THIN_WHOLE intervals as recorded.
 * After these, an interval is short if it lasts less than 1/DT_THIN_WHOLE of the time since the
 * first interval of the track. So the track grows with the logarithm of the recording's length.
 */
#pragma once

#include "shared/model_events.h"

enum { DT_THIN_WHOLE = 10000 };

struct dt_thin {
    uint64_t seen;      /* intervals */
    int64_t first;      /* begin of the first interval */
    uint64_t held;      /* short intervals that become the next slice */
    uint64_t thinned;   /* all short intervals */
    int64_t begin, end; /* of the held ones */
    int64_t ns[DT_STATES];
};

/* Counts an interval; returns whether it is short. */
bool dt_thin_note(struct dt_thin *thin, int64_t begin, int64_t end);
/* Whether the held intervals have to be written before a short interval can be added. */
bool dt_thin_is_full(const struct dt_thin *thin, int64_t begin, int64_t end);
void dt_thin_add(struct dt_thin *thin, enum dt_state state, int64_t begin, int64_t end);
/* Call it when the held intervals are written. */
void dt_thin_clear(struct dt_thin *thin);
