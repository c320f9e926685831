/*
 * A lane: what the timeline has of one process, or of several of one kind (folds.h). Its intervals
 * are kept in bounded memory: when there are too many, short ones are merged with their neighbours.
 */
#ifndef DT_VIEWER_PAGE_LANE_H
#define DT_VIEWER_PAGE_LANE_H

#include "who/who.h"

struct dt_page_fold;

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

    struct dt_page_fold *fold; /* its kind, if it may share a row with others of that; else NULL */

    GArray *intervals; /* of struct dt_page_interval; NULL if there are none */

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
/* Merges the shortest until there are at most `most` intervals, of which one is always left. The
   finest level is taken that is enough: at level n, short is what lasts less than 1000 << n ns, and
   only neighbours that begin in the same slot of that length become one. */
void dt_page_lane_limit(struct dt_page_lane *lane, unsigned most);
/* Adds the intervals of another lane to it. */
void dt_page_lane_take(struct dt_page_lane *lane, const struct dt_page_lane *other);
/* Makes what was taken a row again, in order and without overlaps: at each time the busiest state
   of its processes. */
void dt_page_lane_flatten(struct dt_page_lane *lane);
void dt_page_lane_drop_intervals(struct dt_page_lane *lane);

static inline unsigned dt_page_lane_size(const struct dt_page_lane *lane) {
    return lane->intervals ? lane->intervals->len : 0;
}

#endif
