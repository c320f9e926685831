#include "page/lane.h"

struct dt_page_lane *dt_page_lane_new(struct dt_who *who) {
    struct dt_page_lane *lane = g_new0(struct dt_page_lane, 1);

    lane->who = dt_who_keep(who);
    lane->references = 1;
    lane->index = -1;
    return lane;
}

struct dt_page_lane *dt_page_lane_ref(struct dt_page_lane *lane) {
    if (lane)
        lane->references++;
    return lane;
}

void dt_page_lane_unref(struct dt_page_lane *lane) {
    if (!lane || --lane->references > 0)
        return;
    dt_page_lane_drop_intervals(lane);
    dt_who_drop(lane->who);
    g_free(lane);
}

static int64_t busy(const struct dt_page_interval *of) {
    if (of->state == DT_PAGE_LANE_MERGED)
        return (of->end - of->begin) / 1000 * of->extra;
    return dt_is_busy((enum dt_state)of->state) ? of->end - of->begin : 0;
}

void dt_page_lane_add(struct dt_page_lane *lane, const struct dt_interval *interval,
                      uint32_t text) {
    struct dt_page_interval added = {
        .begin = interval->begin,
        .end = interval->end,
        .text = text,
        .state = (uint8_t)interval->state,
        .extra = interval->state == DT_STATE_COLLECTING && interval->is_major,
    };

    if (interval->end < interval->begin || interval->state == DT_STATE_UNKNOWN)
        return;
    if (dt_is_busy(interval->state))
        lane->run_ns += interval->end - interval->begin;
    else if (interval->state == DT_STATE_RUNNABLE)
        lane->runnable_ns += interval->end - interval->begin;
    lane->intervals_seen++;
    if (!lane->intervals)
        lane->intervals = g_array_new(FALSE, FALSE, sizeof added);
    g_array_append_val(lane->intervals, added);
}

/* Become one at this resolution: short, without a gap, within one slot. */
static bool are_one(const struct dt_page_interval *of, const struct dt_page_interval *next,
                    int64_t resolution) {
    return of->end - of->begin < resolution && next->end - next->begin < resolution &&
           next->begin - of->end < resolution && of->begin / resolution == next->begin / resolution;
}

/* How many intervals from `from` on become one. */
static unsigned run_of_short(const GArray *all, unsigned from, int64_t resolution) {
    const struct dt_page_interval *of = &g_array_index(all, struct dt_page_interval, from);
    unsigned n = from + 1;

    for (; n < all->len && are_one(of, of + 1, resolution); n++)
        of++;
    return n - from;
}

static struct dt_page_interval as_one(const GArray *all, unsigned from, unsigned size) {
    const struct dt_page_interval *of = &g_array_index(all, struct dt_page_interval, from);
    struct dt_page_interval one = {
        .begin = of->begin, .end = of[size - 1].end, .state = DT_PAGE_LANE_MERGED};
    int64_t ran = 0;

    for (unsigned n = 0; n < size; n++)
        ran += busy(&of[n]);
    if (one.end > one.begin)
        one.extra =
            (uint16_t)CLAMP((double)ran * 1000 / (double)(one.end - one.begin) + 0.5, 0, 1000);
    return one;
}

void dt_page_lane_merge(struct dt_page_lane *lane, int64_t resolution) {
    GArray *all = lane->intervals;
    unsigned to = 0;

    if (!all || resolution < lane->resolution)
        return;
    lane->resolution = resolution;
    for (unsigned from = 0; from < all->len;) {
        unsigned size = run_of_short(all, from, resolution);
        struct dt_page_interval one =
            size > 1 ? as_one(all, from, size) : g_array_index(all, struct dt_page_interval, from);

        for (unsigned n = from; size > 1 && n < from + size; n++)
            lane->merged +=
                g_array_index(all, struct dt_page_interval, n).state != DT_PAGE_LANE_MERGED;
        g_array_index(all, struct dt_page_interval, to++) = one;
        from += size;
    }
    g_array_set_size(all, to);
}

void dt_page_lane_count_merges(const struct dt_page_lane *lane,
                               size_t merges[DT_PAGE_LANE_RESOLUTIONS]) {
    const struct dt_page_interval *of = (void *)(lane->intervals ? lane->intervals->data : NULL);

    for (unsigned n = 1; n < dt_page_lane_size(lane); n++, of++)
        for (unsigned r = 0; r < DT_PAGE_LANE_RESOLUTIONS; r++)
            if (DT_PAGE_LANE_RESOLUTION(r) >= lane->resolution &&
                are_one(of, of + 1, DT_PAGE_LANE_RESOLUTION(r))) {
                merges[r]++;
                break;
            }
}

void dt_page_lane_limit(struct dt_page_lane *lane, unsigned most) {
    int64_t resolution = MAX(lane->resolution, DT_PAGE_LANE_RESOLUTION(0) / 2);

    while (dt_page_lane_size(lane) > most && resolution < INT64_MAX / 4)
        dt_page_lane_merge(lane, resolution *= 2);
}

void dt_page_lane_drop_intervals(struct dt_page_lane *lane) {
    if (lane->intervals)
        g_array_free(lane->intervals, TRUE);
    lane->intervals = NULL;
}
