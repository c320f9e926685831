/*
 * The VM's counters over time, for the charts of load: of each node the times of its samples, and
 * each counter's value in them. When there are too many samples, two become one.
 */
#ifndef DT_VIEWER_PAGE_COUNTERS_H
#define DT_VIEWER_PAGE_COUNTERS_H

#include "shared/sink.h"
#include "who/nodes.h"

struct dt_page_counters;

struct dt_page_counters *dt_page_counters_new(void);
void dt_page_counters_free(struct dt_page_counters *counters);

/* An array of {"node": name, "times": [...], "of": {counter: [...], ...}}; times are ns since
   `zero`, a value is null where a sample has none. */
void dt_page_counters_json(const struct dt_page_counters *counters,
                           const struct dt_seen_nodes *nodes, int64_t zero, GString *to);

/* The function that collects; it takes a struct dt_page_counters. */
extern const struct dt_sink dt_page_counters_collects;

#endif
