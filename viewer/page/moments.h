/*
 * Further items of the timeline: server calls, spans, marks, exits. The ones with the greatest
 * weight of each kind are kept.
 */
#ifndef DT_VIEWER_PAGE_MOMENTS_H
#define DT_VIEWER_PAGE_MOMENTS_H

#include "page/lane.h"

struct dt_page_moment {
    struct dt_page_lane *process, *other; /* with references; may be NULL */
    int64_t begin, end;                   /* equal for a point in time */
    int64_t delivered, taken;             /* of a call; may be DT_NO_VALUE */
    int64_t weight;
    unsigned kind; /* call: dt_outcome; exit: whether it is a crash */
    char *name, *text;
};

struct dt_page_moments {
    GArray *of; /* of struct dt_page_moment */
    unsigned most;
    uint64_t seen;
};

void dt_page_moments_init(struct dt_page_moments *moments, unsigned most);
void dt_page_moments_clear(struct dt_page_moments *moments);
/* Takes references to the processes and copies the texts. */
void dt_page_moments_add(struct dt_page_moments *moments, const struct dt_page_moment *one);
/* Keeps at most `most` items, and sorts them by their begin. */
void dt_page_moments_sort(struct dt_page_moments *moments);

#endif
