/*
 * The tracks of a Perfetto trace, and the sink's data of live nodes and processes.
 *
 *     node ─┬─ schedulers ── scheduler 1, ...
 *           ├─ processes ─┬─ a process: its states
 *           │             │    ├─ calls, spans, server calls, requests, messages, events
 *           │             │    └─ mailbox
 *           │             └─ a group ── processes; those of one kind ── processes
 *           ├─ ports, other nodes ── as processes
 *           ├─ counters ── a counter, ...
 *           └─ log, marks, VM events, lost events
 *     requests ── a label of seq_trace, ...
 *
 * Empty tracks are not written. Perfetto reads all descriptors, except those of counters, before
 * the events. So the descriptors of nodes, groups and processes are written when these are gone:
 * only then are their names known, and the run time by which they are sorted.
 */
#pragma once

#include "perfetto/track_lanes.h"
#include "perfetto/packets.h"
#include "perfetto/thinning.h"
#include "shared/model_events.h"

/* Tracks of a node. */
enum dt_root {
    DT_ROOT_SCHEDULERS,
    DT_ROOT_PROCESSES,
    DT_ROOT_PORTS,
    DT_ROOT_FOREIGN,
    DT_ROOT_COUNTERS,
    DT_ROOT_LOG,
    DT_ROOT_MARKS,
    DT_ROOT_VM,
    DT_ROOT_LOST,
    DT_ROOTS
};

/* Tracks of a process, in this order. */
enum dt_child {
    DT_CHILD_CALLS,
    DT_CHILD_SPANS,
    DT_CHILD_SERVER_CALLS,
    DT_CHILD_REQUESTS,
    DT_CHILD_MESSAGES,
    DT_CHILD_MAILBOX,
    DT_CHILD_EVENTS,
    DT_CHILDREN
};

/* A pending spawn: its flow ends at the first slice of the spawned process. */
struct dt_spawn {
    uint64_t track; /* of the parent's events; 0: no pending spawn */
    int64_t time;
    char *parent;
};

/* The sink's data of a process or port, in its of_sink. */
struct dt_shown {
    uint64_t track;    /* 0: no track yet */
    unsigned instance; /* of its pid in this node; from 2 on, part of the name */
    char *show;        /* its name with the instance, or NULL */
    struct dt_name name;
    uint64_t child[DT_CHILDREN];
    struct dt_track_lanes lanes[DT_CHILDREN];
    struct dt_spawn spawn;
    struct dt_thin states;
    int64_t run;          /* ns; orders processes */
    int64_t last_state;   /* the end of the last state written */
    int64_t first_call;   /* the begin of the first call written */
    int64_t first_known;  /* the same, as reported by the model */
    int64_t last_call;    /* the time of the last begin or end of a call */
    uint64_t apart;       /* the number of the frame on a separate track; 0: none */
    int64_t last_counted; /* the last written value of the mailbox */
};

struct dt_tracks;

struct dt_tracks *dt_tracks_new(struct dt_packets *packets);
/* After the end of the model: writes the tracks that belong to no node. */
void dt_tracks_finish(struct dt_tracks *tracks);
void dt_tracks_free(struct dt_tracks *tracks);

void dt_tracks_node(struct dt_tracks *tracks, struct dt_node *node);
void dt_tracks_node_gone(struct dt_tracks *tracks, struct dt_node *node);
uint64_t dt_tracks_root(struct dt_tracks *tracks, struct dt_node *node, enum dt_root root);
uint64_t dt_tracks_lost(struct dt_tracks *tracks, struct dt_node *node, int64_t begin, int64_t end);
uint64_t dt_tracks_counter(struct dt_tracks *tracks, struct dt_node *node, const char *name,
                           const char *unit);
uint64_t dt_tracks_scheduler(struct dt_tracks *tracks, struct dt_scheduler *scheduler,
                             int64_t begin, int64_t end);

struct dt_shown *dt_tracks_shown(struct dt_tracks *tracks, struct dt_process *process);
void dt_tracks_renamed(struct dt_process *process);
/* The display name of the process. */
const char *dt_tracks_show(struct dt_tracks *tracks, struct dt_process *process);
uint64_t dt_tracks_process(struct dt_tracks *tracks, struct dt_process *process);
uint64_t dt_tracks_child(struct dt_tracks *tracks, struct dt_process *process, enum dt_child child);
/* A track for a slice that may overlap others. */
uint64_t dt_tracks_lane(struct dt_tracks *tracks, struct dt_process *process, enum dt_child child,
                        int64_t begin, int64_t end);
/* A lane of the requests with this seq_trace label; 0: too many labels. */
uint64_t dt_tracks_request(struct dt_tracks *tracks, const char *label, int64_t begin, int64_t end);
void dt_tracks_process_gone(struct dt_tracks *tracks, struct dt_process *process);
