/* gen_server calls, summed over all callers and requests. */
#pragma once

#include "summary/summary.h"

/* All calls of a gen_server. */
struct dt_served {
    struct dt_who *server;
    uint64_t count, timeouts, downs;
    struct dt_quantiles took, queued, worked;
};

/* struct dt_who -> struct dt_served; the caller destroys the table. */
GHashTable *dt_served_by_server(const struct dt_summary *summary);
/* By the 99th percentile, or the longest of few calls; the caller frees the array. */
GPtrArray *dt_served_slowest_first(GHashTable *servers);
