/*
 * Further items of the timeline: server calls, spans, marks, exits. The ones with the greatest
 * weight of each kind are kept.
 */
#pragma once

#include "page/lane.h"

struct dt_page_item {
    struct dt_page_lane *process, *other; /* with references; may be NULL */
    int64_t begin, end;                   /* equal for a point in time */
    int64_t delivered, taken;             /* of a call; may be DT_NO_VALUE */
    int64_t weight;
    unsigned kind; /* call: dt_outcome; exit: whether it is a crash */
    char *name, *text;
};

struct dt_page_items {
    GArray *of; /* of struct dt_page_item */
    unsigned most;
    uint64_t seen;
};

void dt_page_items_init(struct dt_page_items *items, unsigned most);
void dt_page_items_clear(struct dt_page_items *items);
/* Takes references to the processes and copies the texts. */
void dt_page_items_add(struct dt_page_items *items, const struct dt_page_item *one);
/* Keeps at most `most` items, and sorts them by their begin. */
void dt_page_items_sort(struct dt_page_items *items);
