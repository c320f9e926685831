/* The life cycle of processes and ports: they begin, exit, are linked and get names. */
#pragma once

#include "model/entities/nodes.h"

void dt_process_event(struct node *node, const struct dt_recorded *event);
