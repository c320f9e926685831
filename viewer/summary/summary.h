/*
 * The summary of a recording, collected from the events of the model in bounded memory. The report
 * prints it; the page embeds it.
 *
 *     summary_json                          the summary as JSON
 *     findings                              what a user should look at first: rules and texts
 *     sorted_rows                           tables in display order
 *     summary_events, summary_instants,     events of the model -> counts, rows
 *     samples
 *     summary                               all collected data
 *     top_n, pairs, named_counts,           bounded tables
 *     occurrences, unclear_exits, requests, copies, literals,
 *     life_counts, purges, sampled_tables, port_queues, socket_owners,
 *     totals, waits
 *     span_parts                            what spans of telemetry have inside them
 *     process_stacks                        what processes did at the end
 *     activity, heap_growth, formatting     what a process did
 *     load, quantiles, sample_series,       time series and histograms
 *     slices
 *     findings/limits                       thresholds of the findings
 *
 * Each uses only the ones below it, and `actors`.
 */
#pragma once

#include "summary/activity.h"
#include "summary/copies.h"
#include "summary/top_n.h"
#include "summary/occurrences.h"
#include "summary/life_counts.h"
#include "summary/load.h"
#include "summary/named_counts.h"
#include "summary/pairs.h"
#include "summary/literals.h"
#include "summary/port_queues.h"
#include "summary/purges.h"
#include "summary/requests.h"
#include "summary/sampled_tables.h"
#include "summary/socket_owners.h"
#include "summary/totals.h"
#include "summary/unclear_exits.h"
#include "summary/waits.h"

/* A gap with lost events. */
struct dt_seen_lost {
    struct dt_seen_node *node;
    char *stream;
    int64_t begin, end;
    uint64_t count; /* 0 if unknown */
};

enum dt_severity { DT_HIGH, DT_MEDIUM, DT_LOW, DT_SEVERITIES };

struct dt_finding {
    enum dt_severity severity;
    const struct dt_rule *rule;
    struct dt_actor *actor; /* NULL: it concerns the recording */
    char *text;
};

struct dt_summary {
    struct dt_actors actors;

    uint64_t events, skipped;
    const char *ended;  /* how nodes ended, a line each */
    const char *stacks; /* process_stacks.h */
    struct dt_period period;
    uint32_t recorded;
    GArray *lost; /* struct dt_seen_lost */
    uint64_t lost_events, lost_rows;
    bool lost_unknown;

    struct dt_top_n processes, ports;
    struct dt_pairs talks, server_calls, dead, reports; /* reports: of the VM, by probe */
    struct dt_pairs copies;                             /* by "send" or "spawn" */
    struct dt_names calls, spans, telemetry, counters;
    struct dt_requests requests;
    struct dt_lives lives;
    struct dt_total_table totals;
    struct dt_ets_tables ets_tables;
    struct dt_port_queues port_queues;
    struct dt_socket_owners socket_owners;
    struct dt_list crashes, waits, collections, log, others, nodes_down, withheld;
    struct dt_list gave_up;                           /* supervisors */
    struct dt_list long_runs;                         /* on normal schedulers, without a pause */
    struct dt_names dirty[DT_SCHEDULER_DIRTY_IO + 1]; /* functions on each kind of scheduler */
    struct dt_unclear_exits unclear_exits;
    struct dt_purges purges;
    struct dt_literals literals;
    struct dt_waits stopped;
    uint64_t processes_seen;
    uint64_t sent, received, reached, dead_messages, log_errors;

    struct dt_load load;
    GArray *findings; /* struct dt_finding */

    void *of_sink; /* data of the sink that owns the summary */
};

struct dt_summary *dt_summary_new(void);
void dt_summary_free(struct dt_summary *summary);

/* The length of the recording in ns; 0 without events. */
static inline int64_t dt_summary_ns(const struct dt_summary *summary) {
    return summary->period.end - summary->period.begin;
}

static inline int64_t dt_summary_untraced(const struct dt_summary *summary) {
    return dt_seen_nodes_untraced(&summary->actors.nodes);
}

/* Whether that is long enough to be mentioned: a second, or a hundredth of the recording. */
static inline bool dt_summary_is_partly_traced(const struct dt_summary *summary) {
    return dt_summary_untraced(summary) >
           MIN(G_GINT64_CONSTANT(1000000000), dt_summary_ns(summary) / 100);
}

/* Extends the period of the recording to this time. */
static inline void dt_summary_at(struct dt_summary *summary, int64_t time) {
    if (time == DT_NO_VALUE)
        return;
    if (summary->period.begin == DT_NO_VALUE)
        summary->period.begin = time;
    summary->period.end = MAX(summary->period.end, time);
}

/* Notes that the recording, and the node if any, has events of this kind. */
static inline void dt_summary_recorded(struct dt_summary *summary, struct dt_seen_node *node,
                                       enum dt_recorded_kind kind) {
    summary->recorded |= 1U << kind;
    if (node)
        node->recorded |= 1U << kind;
}

/* A process that has events in the recording. NULL for NULL. */
static inline struct dt_actor *dt_summary_traced(struct dt_summary *summary,
                                                 struct dt_process *process) {
    struct dt_actor *actor = dt_actor_of(&summary->actors, process);
    if (actor)
        actor->activity->is_traced = true;
    return actor;
}
