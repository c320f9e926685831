/* Events that are reported unchanged: instants, counters and samples. */
#pragma once

#include "model/entities/nodes.h"

/* Takes any event, and ignores those of other kinds. */
void dt_instants_event(struct node *node, const struct dt_recorded *event);
