/* Events that are reported unchanged: instants, counters and samples. */
#pragma once

#include "model/entities/nodes.h"

/* An event that sinks know by its probe. */
void dt_instants_event(struct node *node, const struct dt_recorded *event);
/* An event of a probe without a meaning of its own. */
void dt_instants_general(struct node *node, const struct dt_recorded *event);
void dt_instants_counter(struct node *node, const struct dt_recorded *event);
void dt_instants_sample(struct node *node, const struct dt_recorded *event);
void dt_instants_table(struct node *node, const struct dt_recorded *event);
void dt_instants_port(struct node *node, const struct dt_recorded *event);
void dt_instants_sockets(struct node *node, const struct dt_recorded *event);
void dt_instants_wait(struct node *node, const struct dt_recorded *event);
