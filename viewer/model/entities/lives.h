/* The life cycle of processes and ports: they begin, exit, are linked and get names. */
#ifndef DT_VIEWER_MODEL_ENTITIES_LIVES_H
#define DT_VIEWER_MODEL_ENTITIES_LIVES_H

#include "model/entities/nodes.h"

void dt_process_event(struct node *node, const struct dt_recorded *event);

#endif
