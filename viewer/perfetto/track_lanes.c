#include "perfetto/track_lanes.h"

#include <string.h>

/* The number of the lane's last slices that the new one would contain; -1: it does not fit. */
static int holds(const struct dt_track_lane *lane, int64_t begin, int64_t end) {
    int held = 0;

    for (unsigned i = lane->slices; i-- > 0 && lane->slice[i].end > begin; held++)
        if (lane->slice[i].begin <= begin || lane->slice[i].end > end)
            return -1;
    return begin >= lane->floor ? held : -1;
}

/* Lanes that are searched. If none of them fits, the slice gets a new lane. */
enum { LANES_SEARCHED = 1000 };

static struct dt_track_lane *fitting(const struct dt_track_lanes *lanes, int64_t begin, int64_t end,
                                     int *held) {
    unsigned searched = MIN(lanes->lanes->len, LANES_SEARCHED);

    for (unsigned i = 0; i < searched; i++) {
        struct dt_track_lane *lane = &g_array_index(lanes->lanes, struct dt_track_lane, i);

        *held = holds(lane, begin, end);
        if (*held >= 0)
            return lane;
    }
    return NULL;
}

static struct dt_track_lane *new_lane(struct dt_track_lanes *lanes) {
    g_array_set_size(lanes->lanes, lanes->lanes->len + 1);
    struct dt_track_lane *lane =
        &g_array_index(lanes->lanes, struct dt_track_lane, lanes->lanes->len - 1);
    lane->floor = INT64_MIN;
    return lane;
}

struct dt_track_lane *dt_track_lanes_take(struct dt_track_lanes *lanes, int64_t begin,
                                          int64_t end) {
    if (!lanes->lanes)
        lanes->lanes = g_array_new(false, true, sizeof(struct dt_track_lane));
    int held = 0;
    struct dt_track_lane *lane = fitting(lanes, begin, end, &held);
    if (!lane) {
        lane = new_lane(lanes);
        held = 0;
    }
    lane->slices -= (unsigned)held;
    if (lane->slices == DT_TRACK_LANE_SLICES) {
        lane->floor = lane->slice[0].end;
        lane->slices--;
        memmove(lane->slice, lane->slice + 1, lane->slices * sizeof lane->slice[0]);
    }
    lane->slice[lane->slices].begin = begin;
    lane->slice[lane->slices].end = end;
    lane->slices++;
    return lane;
}

void dt_track_lanes_free(struct dt_track_lanes *lanes) {
    if (lanes->lanes)
        g_array_free(lanes->lanes, true);
    lanes->lanes = NULL;
}
