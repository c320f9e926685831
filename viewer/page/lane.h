/*
 * A lane: what the timeline has of one process. Its intervals are kept in bounded memory: when
 * there are too many, short ones are merged with their neighbours.
 */
#ifndef DT_VIEWER_PAGE_LANE_H
#define DT_VIEWER_PAGE_LANE_H

#include "who/who.h"

/* Beside the states of the model: several short intervals as one. */
enum { DT_PAGE_LANE_MERGED = DT_STATES };

struct dt_page_interval {
    int64_t begin, end;
    uint32_t text;  /* the function, in the timeline's strings */
    uint16_t extra; /* DT_PAGE_LANE_MERGED: how much of it the process ran, per mille; of a
                       collection 1 if it was major */
    uint8_t state;
};

struct dt_page_lane {
    struct dt_who *who;  /* its process, referred to */
    unsigned references; /* one of its process or of those that are gone, and one per message, call,
                            ... that names it */

    GArray *intervals;  /* of struct dt_page_interval; NULL if there are none */
    int64_t resolution; /* shorter ones are merged; 0: none has been */

    int64_t run_ns, runnable_ns;
    uint64_t messages, intervals_seen, merged;
    bool has_crashed;

    double score; /* how interesting it is, beside others */
    int index;    /* in the page's processes, -1: not there */
};

struct dt_page_lane *dt_page_lane_new(struct dt_who *who);
struct dt_page_lane *dt_page_lane_ref(struct dt_page_lane *lane); /* NULL: of NULL */
void dt_page_lane_unref(struct dt_page_lane *lane);
void dt_page_lane_add(struct dt_page_lane *lane, const struct dt_interval *interval, uint32_t text);
/* Resolutions, in ns: nobody looks closer than the first at a recording that is too long to be
   kept, and slots longer than the last, a minute, would show nothing more. Slots of one lie within
   those of the next, so merging by it gives the same, whatever was merged before. */
enum { DT_PAGE_LANE_RESOLUTIONS = 27 };
#define DT_PAGE_LANE_RESOLUTION(n) (INT64_C(1000) << (n))

/* Merges what is shorter than `resolution`. */
void dt_page_lane_merge(struct dt_page_lane *lane, int64_t resolution);
/* Merges until there are at most `most` intervals. */
void dt_page_lane_limit(struct dt_page_lane *lane, unsigned most);
/* Adds how many intervals fewer each resolution leaves than the one before. */
void dt_page_lane_count_merges(const struct dt_page_lane *lane,
                               size_t merges[DT_PAGE_LANE_RESOLUTIONS]);
void dt_page_lane_drop_intervals(struct dt_page_lane *lane);
static inline unsigned dt_page_lane_size(const struct dt_page_lane *lane) {
    return lane->intervals ? lane->intervals->len : 0;
}

#endif
