/*
 * Lanes: tracks with the same name for slices that may overlap.
 *
 * Slices of a track must nest. Perfetto sorts them by time, and slices of equal time by their order
 * in the file. So a slice that is reported at its end fits on a lane if it begins after all slices
 * of the lane, or if it contains each slice that it overlaps and begins before it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* Slices that a lane remembers. */
enum { DT_TRACK_LANE_SLICES = 8 };

struct dt_track_lane {
    uint64_t track; /* 0: not written yet */
    unsigned slices;
    int64_t floor; /* the end of the last slice that is no longer remembered */
    struct {
        int64_t begin, end;
    } slice[DT_TRACK_LANE_SLICES]; /* the outermost ones, by time */
};

struct dt_track_lanes {
    GArray *lanes; /* of struct dt_track_lane; NULL: none yet */
};

/* A lane for this slice, which the lane remembers. The result is valid until the next call. */
struct dt_track_lane *dt_track_lanes_take(struct dt_track_lanes *lanes, int64_t begin, int64_t end);
void dt_track_lanes_free(struct dt_track_lanes *lanes);
