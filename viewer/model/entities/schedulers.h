/* Schedulers. */
#pragma once

#include "model/entities/nodes.h"

struct scheduler {
    struct dt_scheduler seen;
    struct process *runs; /* a process */
    struct process *port; /* a port, alone or called by that process, which continues after it */
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
