/*
 * The VM's counters over time, for the charts of load: for each node, the times of its samples and
 * the values of each counter. If there are too many samples, pairs of them are merged.
 */
#pragma once

#include "shared/sink.h"
#include "actors/seen_nodes.h"

struct dt_page_counters;

struct dt_page_counters *dt_page_counters_new(void);
void dt_page_counters_free(struct dt_page_counters *counters);

/* An array of {"node": name, "times": [...], "of": {counter: [...], ...}}. Times are ns after
   `zero`; a value is null if the sample does not have the counter. */
void dt_page_counters_json(const struct dt_page_counters *counters,
                           const struct dt_seen_nodes *nodes, int64_t zero, GString *to);

/* The callback that collects; it takes a struct dt_page_counters. */
extern const struct dt_sink dt_page_counters_collector;
