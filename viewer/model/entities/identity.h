/* Who a process is: its names, its initial call, its parent and its group. */
#ifndef DT_VIEWER_MODEL_ENTITIES_IDENTITY_H
#define DT_VIEWER_MODEL_ENTITIES_IDENTITY_H

#include "model/entities/process.h"

/* What an event tells of it; "" and NULL are unknown. */
struct identity {
    struct process *parent;
    const char *initial, *name, *label;
};

/* Returns whether something is new. */
bool dt_identity_learn(struct process *p, const struct identity *identity);
/* Tells that, and the groups of those below it that it changes. */
void dt_identity_tell(struct process *p);
/* It has no family any more. */
void dt_identity_leave(struct process *p);

#endif
