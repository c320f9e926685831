/* The identity of a process: its names, initial call, parent and group. */
#pragma once

#include "model/entities/process.h"

/* The part of an identity that one event has; "" and NULL mean unknown. */
struct identity {
    struct process *parent;
    const char *initial, *name, *label;
};

/* Adds new data. Returns whether anything has changed. */
bool dt_identity_learn(struct process *p, const struct identity *identity);
/* Reports the change, and the changed groups of its descendants. */
void dt_identity_emit(struct process *p);
/* Detaches it from its parent and its children. */
void dt_identity_leave(struct process *p);
