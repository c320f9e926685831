/*
 * A lane: the timeline's data of one process, or of several processes of one kind (folds.h). Its
 * memory is bounded: if there are too many intervals, short ones are merged with their neighbours.
 */
#pragma once

#include "actors/actors.h"

struct dt_page_fold;

/* In addition to the states of the model: several short intervals, merged into one. */
enum { DT_PAGE_LANE_MERGED = DT_STATES };

struct dt_page_interval {
    int64_t begin, end;
    uint32_t text;  /* the function, in the timeline's strings */
    uint16_t extra; /* DT_PAGE_LANE_MERGED: share that the process ran, per mille;
                       collection: 1 if major */
    uint8_t state;
};

struct dt_page_lane {
    struct dt_actor *actor; /* its process, with a reference */
    unsigned references; /* one for the live process or the list of gone ones, and one per message,
                            call, ... that names it */

    struct dt_page_fold *fold; /* its kind, if it may share the row of that kind; else NULL */

    GArray *intervals; /* of struct dt_page_interval; NULL if there are none */

    int64_t run_ns, runnable_ns;
    uint64_t messages, intervals_seen, merged;
    bool has_crashed;

    double score; /* how interesting it is, relative to others */
    int index;    /* in the page's processes; -1: absent */
};

struct dt_page_lane *dt_page_lane_new(struct dt_actor *actor);
struct dt_page_lane *dt_page_lane_ref(struct dt_page_lane *lane); /* NULL for NULL */
void dt_page_lane_unref(struct dt_page_lane *lane);
void dt_page_lane_add(struct dt_page_lane *lane, const struct dt_interval *interval, uint32_t text);
/* Merges the shortest intervals until at most `most`, and at least one, are left. It uses the
   finest level that suffices: at level n, intervals shorter than 1000 << n ns are short, and only
   neighbours that begin in the same slot of that length are merged. */
void dt_page_lane_limit(struct dt_page_lane *lane, unsigned most);
/* Adds the intervals of another lane. */
void dt_page_lane_take(struct dt_page_lane *lane, const struct dt_page_lane *other);
/* Sorts the intervals of combined lanes and removes overlaps: at each time, the busiest state of
   the processes remains. */
void dt_page_lane_flatten(struct dt_page_lane *lane);
void dt_page_lane_drop_intervals(struct dt_page_lane *lane);

static inline unsigned dt_page_lane_size(const struct dt_page_lane *lane) {
    return lane->intervals ? lane->intervals->len : 0;
}
