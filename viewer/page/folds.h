/*
 * Folds: short-lived processes of one kind (shared/process_kinds.h) share a row in the timeline. A
 * reader may unfold it to see the most interesting of them in separate rows below.
 */
#pragma once

#include "page/lane.h"

/* Processes of a kind that can be unfolded, at most. */
enum { DT_PAGE_FOLD_UNFOLDS = 20 };

struct dt_page_fold {
    unsigned members;
    struct dt_page_lane *lane; /* its row, with a reference; NULL: too few members */
    GPtrArray *unfolds;        /* lanes of members, with their intervals */
    char *name;                /* the name of all members; "" if they have none */
    char *initial;             /* their initial call; "" if it is unknown */
    int64_t began, ended;      /* of the first and the last member */
};

struct dt_page_folds;

struct dt_page_folds *dt_page_folds_new(void);
void dt_page_folds_free(struct dt_page_folds *folds);

/* A process is gone. It counts as short-lived if it lived for a small part of `whole`, in ns. */
void dt_page_folds_note(struct dt_page_folds *folds, struct dt_page_lane *lane,
                        const struct dt_process *process, int64_t whole);
/* Moves lanes that share a row out of the array, and adds the new rows to it. */
void dt_page_folds_apply(GPtrArray *lanes);
/* Keeps at most `most` lanes to unfold: those that crashed, then those that ran longest. */
void dt_page_fold_limit(struct dt_page_fold *fold, unsigned most);

static inline bool dt_page_is_fold(const struct dt_page_lane *lane) {
    return lane->fold && lane->fold->lane == lane;
}
/* The number of intervals in the lanes to unfold. */
size_t dt_page_fold_size(const struct dt_page_fold *fold);
/* The name of a row: "shop_oven × 62". Free with g_free. */
char *dt_page_fold_show(const struct dt_page_fold *fold);
