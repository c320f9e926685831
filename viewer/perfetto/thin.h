/*
 * Thins a track out: of a track that has very many intervals, those that are too short to be seen
 * become one slice, which says how many they are and how long they ran.
 *
 * A trace viewer holds all slices in memory. A process that collects garbage 90,000 times per
 * second would take most of it, and nobody looks at each one. So a track has its first
 * DT_THIN_WHOLE intervals as recorded. From then on an interval is short if the time since the
 * track's first one has more than DT_THIN_WHOLE of its length. So the track grows with the
 * logarithm of the recording's length.
 */
#ifndef DT_VIEWER_PERFETTO_THIN_H
#define DT_VIEWER_PERFETTO_THIN_H

#include "shared/told.h"

enum { DT_THIN_WHOLE = 10000 };

struct dt_thin {
    uint64_t seen;      /* intervals */
    int64_t first;      /* the begin of the first one */
    uint64_t held;      /* short ones that are to become one slice */
    uint64_t thinned;   /* all that are short */
    int64_t begin, end; /* of those that are held */
    int64_t ns[DT_STATES];
};

/* Notes an interval; returns whether it is short. */
bool dt_thin_note(struct dt_thin *thin, int64_t begin, int64_t end);
/* Whether those that are held have to be written before a short interval is added. */
bool dt_thin_is_full(const struct dt_thin *thin, int64_t begin, int64_t end);
void dt_thin_add(struct dt_thin *thin, enum dt_state state, int64_t begin, int64_t end);
/* They are written. */
void dt_thin_clear(struct dt_thin *thin);

#endif
