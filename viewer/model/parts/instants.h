/* Events that are reported unchanged: instants, counters and samples. */
#ifndef DT_VIEWER_MODEL_PARTS_INSTANTS_H
#define DT_VIEWER_MODEL_PARTS_INSTANTS_H

#include "model/entities/nodes.h"

/* Takes any event, and ignores those of other kinds. */
void dt_instants_event(struct node *node, const struct dt_recorded *event);

#endif
