/*
 * Exited processes or ports: the top ones by each of several criteria are kept, the others are
 * summed.
 */
#ifndef DT_VIEWER_SUMMARY_KEPT_H
#define DT_VIEWER_SUMMARY_KEPT_H

#include "who/who.h"

struct dt_kept {
    GPtrArray *whos;
    uint64_t left_out;
    int64_t run, collecting;
    uint64_t sent, received;
};
void dt_kept_init(struct dt_kept *kept);
void dt_kept_free(struct dt_kept *kept);
void dt_kept_add(struct dt_kept *kept, struct dt_who *who);
void dt_kept_cut(struct dt_kept *kept);              /* leaves the top ones by each criterion */
GPtrArray *dt_kept_copy(const struct dt_kept *kept); /* for sorting; the caller frees it */

/* The largest number first. */
typedef int64_t dt_criterion(const struct dt_who *who);
dt_criterion dt_kept_by_messages; /* messages that it sent, and that reached it */
dt_criterion dt_kept_by_mailbox;  /* the most in flight at once */
dt_criterion dt_kept_by_queue;    /* by samples */
dt_criterion dt_kept_by_memory;   /* by samples */
dt_criterion dt_kept_by_dirty_io; /* time on dirty I/O schedulers */
void dt_kept_sort(GPtrArray *whos, dt_criterion *by);

#endif
