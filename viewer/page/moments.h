/*
 * What happened in the timeline beside intervals and messages: calls of servers, spans, marks,
 * exits. Of each kind the weightiest are kept.
 */
#ifndef DT_VIEWER_PAGE_MOMENTS_H
#define DT_VIEWER_PAGE_MOMENTS_H

#include "page/lane.h"

struct dt_page_moment {
    struct dt_page_lane *process, *other; /* both are referred to; NULL */
    int64_t begin, end;                   /* the same for what happens at one time */
    int64_t delivered, taken;             /* of a call; DT_NO_VALUE */
    int64_t weight;
    unsigned kind; /* of a call dt_outcome, of an exit whether it was a crash */
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
/* The kept ones in the order of their begin. */
void dt_page_moments_sort(struct dt_page_moments *moments);

#endif
