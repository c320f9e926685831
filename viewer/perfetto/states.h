/* Runs on schedulers, and states of processes, as slices. */
#pragma once

#include "perfetto/slices.h"

/* A callback of the sink, whose data is a struct dt_perfetto. */
void dt_perfetto_interval(void *data, const struct dt_interval *interval);
/* Write the held intervals. Call them before the process, or the node, is gone. */
void dt_perfetto_end_states(struct dt_perfetto *s, struct dt_process *process);
void dt_perfetto_end_runs(struct dt_perfetto *s, const struct dt_node *node);

/* Returns the flow that ends at the next event of the process; 0: the spawn is not recorded, or the
   event is not the first one. */
uint64_t dt_perfetto_spawn_flow(struct dt_perfetto *s, struct dt_process *process, int64_t time);
