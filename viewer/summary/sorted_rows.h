/* The rows of each table in display order; the caller frees the array. */
#pragma once

#include "summary/summary.h"

typedef GPtrArray *dt_rows(const struct dt_summary *summary);
dt_rows dt_rows_nodes, dt_rows_lost, dt_rows_findings;                     /* dt_seen_node, ... */
dt_rows dt_rows_processes, dt_rows_ports;                                  /* dt_actor */
dt_rows dt_rows_calls, dt_rows_spans, dt_rows_telemetry, dt_rows_counters; /* dt_named */
dt_rows dt_rows_totals;                                                    /* dt_total */
dt_rows dt_rows_server_calls, dt_rows_talks, dt_rows_dead;                 /* dt_pair */
dt_rows dt_rows_requests;                                                  /* dt_request */
dt_rows dt_rows_crashes, dt_rows_waits, dt_rows_collections, dt_rows_log;  /* dt_listed */
dt_rows dt_rows_others;                                                    /* dt_listed */

/* Whether the counter is one of each scheduler: run_queue_2. */
bool dt_is_of_scheduler(const char *counter);
