/*
 * The tracks of a Perfetto trace, and what the sink remembers of live nodes and processes.
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
 * Only tracks that have something to show are written. Perfetto reads all descriptors before the
 * events, but those of counters. So the descriptors of nodes, groups and processes come when they
 * are gone: then the names are known, and the run time by which they are ordered.
 */
#ifndef DT_VIEWER_PERFETTO_TRACKS_H
#define DT_VIEWER_PERFETTO_TRACKS_H

#include "perfetto/lanes.h"
#include "perfetto/packets.h"
#include "perfetto/thin.h"
#include "shared/told.h"

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

/* A slice that waits for the first slice of a spawned process. */
struct dt_spawn {
    uint64_t track; /* of the parent's events; 0: none waits */
    int64_t time;
    char *parent;
};

/* Of a process or port; its of_sink. */
struct dt_shown {
    uint64_t track;    /* 0: it has nothing to show */
    unsigned instance; /* of its pid in this node: 2 and more are told in the name */
    char *show;        /* its name with the instance, or NULL */
    struct dt_name name;
    uint64_t child[DT_CHILDREN];
    struct dt_track_lanes lanes[DT_CHILDREN];
    struct dt_spawn spawn;
    struct dt_thin states;
    int64_t run;          /* ns; orders processes */
    int64_t last_state;   /* the end of the last state written */
    int64_t first_call;   /* the begin of the first call written */
    int64_t first_known;  /* the same as the model tells it */
    int64_t last_call;    /* the time of the last begin or end of a call */
    uint64_t apart;       /* the frame that is told and stands on a track of its own; 0: none */
    int64_t last_counted; /* value written last of the mailbox */
};

struct dt_tracks;

struct dt_tracks *dt_tracks_new(struct dt_packets *packets);
/* After the model's end: writes what belongs to no node. */
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
/* The process's name for people. */
const char *dt_tracks_show(struct dt_tracks *tracks, struct dt_process *process);
uint64_t dt_tracks_process(struct dt_tracks *tracks, struct dt_process *process);
uint64_t dt_tracks_child(struct dt_tracks *tracks, struct dt_process *process, enum dt_child child);
/* A track for a slice that may overlap with others. */
uint64_t dt_tracks_lane(struct dt_tracks *tracks, struct dt_process *process, enum dt_child child,
                        int64_t begin, int64_t end);
/* A lane of the requests with this label of seq_trace; 0: there are too many labels. */
uint64_t dt_tracks_request(struct dt_tracks *tracks, const char *label, int64_t begin, int64_t end);
void dt_tracks_process_gone(struct dt_tracks *tracks, struct dt_process *process);

#endif
