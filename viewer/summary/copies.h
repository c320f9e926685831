/*
 * Messages and arguments of new processes that take long to copy.
 *
 * The VM copies a message when it is sent, in one go. So after its event, the sender has no event
 * until the copy is complete; a new process is reported after the copy. A delay by the host looks
 * the same. Therefore a copy counts only if the next collection of the receiver shows that it got
 * as much data as explains the time.
 */
#pragma once

#include "summary/pairs.h"

struct dt_interval;

/* What reached a process at once, by its collections, and a copy for it that is not yet explained:
   the sender, NULL if none, and the time of the copy. */
struct dt_arrival {
    int64_t time;
    uint64_t bytes;
    struct dt_actor *from;
    int64_t begin, ns;
    bool is_spawn;
};

/* A process sends a message to a process of its node, or has started a process. */
void dt_copies_sent(struct dt_pairs *copies, struct dt_actor *from, struct dt_actor *to,
                    int64_t time);
void dt_copies_spawned(struct dt_pairs *copies, struct dt_actor *parent, struct dt_actor *child,
                       int64_t time);
/* A run or a collection of a process. */
void dt_copies_interval(struct dt_pairs *copies, struct dt_actor *actor,
                        const struct dt_interval *interval);
/* It is gone: drops its references. */
void dt_copies_forget(struct dt_actor *actor);
