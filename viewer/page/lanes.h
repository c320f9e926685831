/* All lanes: those of live processes, and the most interesting of those that are gone. */
#pragma once

#include "page/lane.h"

struct dt_page_lanes;

/* `actors` has to outlive the result. */
struct dt_page_lanes *dt_page_lanes_new(struct dt_actors *actors, unsigned processes,
                                        unsigned intervals);
void dt_page_lanes_free(struct dt_page_lanes *lanes);

/* The lane of a process; NULL for NULL. */
struct dt_page_lane *dt_page_lanes_of(struct dt_page_lanes *lanes, struct dt_process *process);
void dt_page_lanes_add(struct dt_page_lanes *lanes, const struct dt_interval *interval,
                       uint32_t text);
/* Call it before dt_actor_gone. */
void dt_page_lanes_gone(struct dt_page_lanes *lanes, struct dt_process *process);

/* After the end of the model: the rows of the timeline within the limits, most interesting first.
   Short-lived processes of one kind share a row (folds.h). */
const GPtrArray *dt_page_lanes_rows(struct dt_page_lanes *lanes);
/* After that: the lanes that a reader may unfold from these rows. */
const GPtrArray *dt_page_lanes_unfolded(const struct dt_page_lanes *lanes);
/* Processes that could have had a row. */
uint64_t dt_page_lanes_seen(const struct dt_page_lanes *lanes);
