/*
 * A bounded series of samples of a level, such as a counter, and whether the level only grows.
 *
 * When the series is full, every second point is removed, so that it always covers the whole
 * recording. The latest samples are retained in addition: a flight recorder writes what happened in
 * the last seconds of a long recording.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DT_SERIES_POINTS = 32 };

struct dt_series {
    unsigned points;
    uint64_t per_point; /* samples from one point to the next; 0: no samples yet */
    uint64_t in_last;   /* samples in the last point, which has the last one */
    int64_t times[DT_SERIES_POINTS], values[DT_SERIES_POINTS];
    unsigned latest; /* the latest samples, oldest first */
    int64_t latest_times[DT_SERIES_POINTS], latest_values[DT_SERIES_POINTS];
};

/* A negative value counts as 0. */
void dt_series_add(struct dt_series *series, int64_t time, int64_t value);
/* The last value; 0 without samples. */
int64_t dt_series_last(const struct dt_series *series);

/* Growth up to the end of a series. */
struct dt_series_growth {
    int64_t begin, end; /* times */
    int64_t from, to;   /* values */
    double per_s;
};

/*
 * Whether the level grows steadily up to the last sample, and this is near the end of the
 * recording: for four seconds and five points at least, to a new maximum in four of five steps, by
 * no step as much as by all others together, and in the second half at least half as fast as in the
 * first. A level that is full, levels off, or jumps does not. Takes the longest such period, or one
 * of the latest samples, if the level was never nearly as high before.
 */
bool dt_series_grows(const struct dt_series *series, int64_t end, struct dt_series_growth *growth);

/* By how much the level grew in that period of another series of the same node; 0 if it fell. */
int64_t dt_series_grown(const struct dt_series *series, const struct dt_series_growth *of);
