/*
 * Lanes: tracks of one name for slices that may overlap.
 *
 * Slices of a track must nest. Perfetto reads them by time, and those of one time in the order of
 * the file. So a slice that is told at its end fits on a lane if it begins after all that the lane
 * has, or if it holds each one of the lane's that it meets and begins before it.
 */
#ifndef DT_VIEWER_PERFETTO_LANES_H
#define DT_VIEWER_PERFETTO_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Slices of a lane that are remembered. */
enum { DT_TRACK_LANE_SLICES = 8 };

struct dt_track_lane {
    uint64_t track; /* 0: not written yet */
    unsigned slices;
    int64_t floor; /* the end of the last slice that is not remembered any more */
    struct {
        int64_t begin, end;
    } slice[DT_TRACK_LANE_SLICES]; /* the outermost ones, by time */
};

struct dt_track_lanes {
    GArray *lanes; /* of struct dt_track_lane; NULL: none yet */
};

/* A lane for this slice, which is remembered; valid until the next call. */
struct dt_track_lane *dt_track_lanes_take(struct dt_track_lanes *lanes, int64_t begin, int64_t end);
void dt_track_lanes_free(struct dt_track_lanes *lanes);

#endif
