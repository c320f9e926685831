/* All lanes: those of live processes, and of those that are gone the most interesting. */
#ifndef DT_VIEWER_HTML_LANES_H
#define DT_VIEWER_HTML_LANES_H

#include "viewer/html_lane.h"

struct dt_html_lanes;

/* Processes are found by the report, which is told of them too, and lives longer. */
struct dt_html_lanes *dt_html_lanes_new(struct dt_report *report, unsigned processes,
                                        unsigned intervals);
void dt_html_lanes_free(struct dt_html_lanes *lanes);

/* The lane of a process; NULL of NULL. */
struct dt_lane *dt_html_lanes_of(struct dt_html_lanes *lanes, struct dt_process *process);
void dt_html_lanes_add(struct dt_html_lanes *lanes, const struct dt_interval *interval,
                       uint32_t text);
/* Before the report is told of it. */
void dt_html_lanes_gone(struct dt_html_lanes *lanes, struct dt_process *process);

/* After the model's end: the rows of the timeline, the most interesting first, within the limits.
 */
const GPtrArray *dt_html_lanes_rows(struct dt_html_lanes *lanes);
/* Processes that could have had a row. */
uint64_t dt_html_lanes_seen(const struct dt_html_lanes *lanes);

#endif
