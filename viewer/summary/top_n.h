/*
 * Exited processes or ports: the top ones by each of several criteria are kept, the others are
 * summed.
 */
#pragma once

#include "summary/activity.h"

struct dt_top_n {
    GPtrArray *actors;
    uint64_t left_out;
    int64_t run, collecting;
    uint64_t sent, received;
};
void dt_top_init(struct dt_top_n *kept);
void dt_top_free(struct dt_top_n *kept);
void dt_top_add(struct dt_top_n *kept, struct dt_actor *actor);
void dt_top_cut(struct dt_top_n *kept);              /* leaves the top ones by each criterion */
GPtrArray *dt_top_copy(const struct dt_top_n *kept); /* for sorting; the caller frees it */

/* The largest number first. */
typedef int64_t dt_criterion(const struct dt_actor *actor);
dt_criterion dt_top_by_messages; /* messages that it sent, and that reached it */
dt_criterion dt_top_by_mailbox;  /* the most in flight at once */
dt_criterion dt_top_by_queue;    /* by samples */
dt_criterion dt_top_by_memory;   /* by samples */
dt_criterion dt_top_by_binaries; /* after its last collection */
dt_criterion dt_top_by_wakes;    /* without a message, or by timers */
dt_criterion dt_top_by_dirty_io; /* time on dirty I/O schedulers */
void dt_top_sort(GPtrArray *actors, dt_criterion *by);
GPtrArray *dt_top_sorted(const struct dt_top_n *kept, dt_criterion *by); /* a copy */
