/* Events that are told as they are recorded: instants, and counters. */
#ifndef DT_VIEWER_MODEL_PARTS_INSTANTS_H
#define DT_VIEWER_MODEL_PARTS_INSTANTS_H

#include "model/entities/nodes.h"

/* Of any event; tells nothing of the others. */
void dt_instants_event(struct node *node, const struct dt_recorded *event);

#endif
