/* Schedulers. */
#pragma once

#include "model/entities/nodes.h"

struct scheduler {
    struct dt_scheduler seen;
    struct process *runs; /* a process */
    struct process *port; /* a port, alone or called by that process, which continues after it */
    /* When a process that ran here last sent a message and then had no event for long, and when it
       stopped: the message has arrived at the end of its copy. */
    int64_t copy_began, copy_ended;
};

/* Of a node. */
struct schedulers {
    GHashTable *by_id;
    struct scheduler *last;
};

void dt_schedulers_new(struct node *node);
void dt_schedulers_free(struct node *node);
/* NULL if the event has neither a thread nor a CPU. */
struct scheduler *dt_scheduler_of(struct node *node, const struct dt_recorded *event);
