/* What a process did: the numbers that the summary collects of each dt_actor. */
#pragma once

#include "summary/formatting.h"
#include "summary/heap_growth.h"
#include "summary/sample_series.h"
#include "actors/actors.h"

/* The samples of a process. */
struct dt_sampled {
    uint64_t count, rises;            /* samples; samples with a longer queue than the one before */
    uint64_t active;                  /* samples in which it ran or could run */
    int64_t first, last;              /* times */
    uint64_t first_queue, last_queue; /* messages */
    uint64_t max_queue, max_memory;   /* bytes */
    int64_t still_since; /* begin of the time without progress, in which it was always or never
                            suspended, and always or never had messages; DT_NO_VALUE: none */
    uint64_t still_first_queue; /* messages at `still_since` */
    uint64_t sent, collections; /* of dt_activity, at the last sample */
    int64_t longest_still;      /* ns, with messages or suspended */
    uint64_t still_queue;       /* messages at the end of `longest_still` */
    bool was_suspended;         /* at the end of `longest_still` */
    char *last_in;              /* owned; its function in the last sample, "" if unknown */
    bool is_suspended;          /* in the last sample */
    struct dt_walk *walk;       /* owned; NULL if its queue was never long */
    struct dt_series memory;    /* bytes */
    uint64_t reductions;        /* in all samples */
    int64_t running_since, runnable_since; /* without a reduction; DT_NO_VALUE */
    int64_t longest_running;               /* ns, in a native function */
    int64_t longest_runnable;              /* ns */
    char *native; /* owned; that function, if known: only on a dirty scheduler a process answers */
};

/* Consecutive samples with a long queue in which the process was busy in the same function. */
struct dt_walk {
    char *in, *longest_in;          /* the function; that of the longest row */
    uint64_t samples, row, longest; /* all that show a function and a long queue; in a row */
};
void dt_sampled_free(struct dt_sampled *sampled); /* NULL is allowed */

/* A message of a timer: of timer_server, or of the VM if deliveries are recorded; or a run after a
   wait that no recorded event ended. */
enum dt_wake { DT_WAKE_TIMER, DT_WAKE_UNEXPLAINED, DT_WAKES };

struct dt_arrival;
struct dt_total;

struct dt_activity {
    bool is_traced; /* the trace has events of this process, so absent events did not happen */
    bool ran;       /* the trace shows when it ran */
    int64_t run, runnable, waiting, collecting; /* ns; `run` is time on a CPU */
    int64_t dirty_cpu;                          /* of `run`, on dirty CPU schedulers */
    int64_t dirty_io;                           /* not of `run` */
    uint64_t long_runs;  /* without a pause, of dt_limits.large_objects.time and longer */
    int64_t longest_run; /* ns */
    int64_t longest_wait, longest_wait_at;
    uint64_t collections, sent, received, mailbox_max, bytes_out;
    uint64_t reached;     /* messages that reached it, including inferred ones */
    uint64_t call_events; /* calls and returns */
    uint64_t wakes[DT_WAKES];
    struct dt_actor *woken_kind;      /* the sum that counts its wakes; NULL: none */
    uint64_t woken_processes;         /* of a sum: how many of its processes have wakes */
    uint64_t heap_max;                /* words after any collection */
    uint64_t binaries;                /* bytes outside of its heap, after its last collection */
    bool has_crashed;                 /* its exit was a crash */
    struct dt_total *total;           /* the row of its name; NULL: not looked up yet */
    struct dt_sampled *sampled;       /* owned; NULL without a sample */
    struct dt_heap *heap;             /* owned; NULL if it was never large */
    struct dt_formatting *formatting; /* owned; NULL if it never converted a term to text */
    GArray *stack;                    /* owned; its open calls */
    GArray *span_parts;               /* owned; NULL if it had no telemetry */
    struct dt_actor *sends_to;        /* the receiver of its last message in the current run */
    int64_t sent_at;                  /* when it last sent a message or started a process */
    struct dt_arrival *arrival;       /* owned; NULL if it never got much data at once */
};

struct dt_activity *dt_activity_new(void);
void dt_activity_free(struct dt_activity *activity);

/* Numbers of a process; DT_NO_VALUE if the recording does not have them. */
int64_t dt_activity_number(const struct dt_actor *actor, enum dt_recorded_kind kind,
                           uint64_t number);
/* `ns` in a state other than DT_STATE_COLLECTING. */
int64_t dt_activity_ns(const struct dt_actor *actor, int64_t ns);
int64_t dt_activity_collecting(const struct dt_actor *actor);
int64_t dt_activity_mailbox_max(const struct dt_actor *actor);
int64_t dt_activity_queue_max(const struct dt_actor *actor);
int64_t dt_activity_memory_max(const struct dt_actor *actor);
