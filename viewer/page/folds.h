/*
 * Folds: short-lived processes of one kind (shared/kinds.h) have one row in the timeline. A reader
 * may unfold it: the most interesting of them have rows of their own below it.
 */
#ifndef DT_VIEWER_PAGE_FOLDS_H
#define DT_VIEWER_PAGE_FOLDS_H

#include "page/lane.h"

/* So many of a kind can be unfolded. */
enum { DT_PAGE_FOLD_UNFOLDS = 20 };

struct dt_page_fold {
    unsigned members;
    struct dt_page_lane *lane; /* its row, referred to; NULL: there are too few members */
    GPtrArray *unfolds;        /* lanes of members, with their intervals */
    char *name;                /* that all members have; "" if they have none */
    char *initial;             /* their initial call; "" if it is unknown */
    int64_t began, ended;      /* of the first and the last one */
};

struct dt_page_folds;

struct dt_page_folds *dt_page_folds_new(void);
void dt_page_folds_free(struct dt_page_folds *folds);

/* A process is gone. It is short-lived if it lived for a small part of `whole`, ns. */
void dt_page_folds_note(struct dt_page_folds *folds, struct dt_page_lane *lane,
                        const struct dt_process *process, int64_t whole);
/* Moves the lanes that share a row out of the array, and adds the new rows to it. */
void dt_page_folds_apply(GPtrArray *lanes);
/* Leaves so many to unfold: those that crashed, then those that ran the longest. */
void dt_page_fold_limit(struct dt_page_fold *fold, unsigned most);

static inline bool dt_page_is_fold(const struct dt_page_lane *lane) {
    return lane->fold && lane->fold->lane == lane;
}
/* Intervals of those to unfold. */
size_t dt_page_fold_size(const struct dt_page_fold *fold);
/* What a row is called: "shop_oven × 62". To be freed by g_free. */
char *dt_page_fold_show(const struct dt_page_fold *fold);

#endif
