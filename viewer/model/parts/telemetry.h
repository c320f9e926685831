/* Events of the library telemetry, as spans: those with a duration ended when they were recorded.
 */
#pragma once

#include "model/entities/nodes.h"

void dt_telemetry_event(struct node *node, const struct dt_recorded *event);
