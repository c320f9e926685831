/*
 * What the model tells and sinks are told.
 *
 * The model tells a sink what happened by the functions of struct dt_sink (sink.h). All times are
 * ns since the epoch. They rise from call to call, except
 *
 *   - begins of what is told at its end: intervals, server calls, spans, inferred frames
 *   - deliveries and returns, which come up to 0.1 ms late where a second probe completes them
 *   - deliveries of messages from other recorded nodes: with a token when the receiver takes them,
 *     and without a send up to 10 s late
 *   - ends of intervals that a loss cuts, which are told when the process is touched next
 *   - ends of runs whose end is unknown, which are their begins
 *   - losses, and ends of calls that a loss cuts, which are told when the loss is over
 *
 * What the trace lacks is not told; what the model infers has `inferred` set.
 *
 * Where events were lost, states are unknown until the next event that tells, stacks are empty, and
 * messages in flight are told as unmatched.
 *
 * Memory is bounded by the live state: processes and ports that live, messages in flight (at most
 * DT_MESSAGES_IN_FLIGHT), frames (DT_FRAMES per process). A process that has exited is released
 * after `process_gone`, which comes when 10,000 others have exited after it, and not before
 * messages in flight and pending calls that name it are gone. Sinks may keep data in `of_sink` and
 * free it then.
 */
#ifndef DT_VIEWER_SHARED_TOLD_H
#define DT_VIEWER_SHARED_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "shared/recorded.h"

enum {
    /* Messages whose delivery is awaited, per node; the oldest are told as unmatched. */
    DT_MESSAGES_IN_FLIGHT = 200000,
    /* Deeper calls are counted, not kept. */
    DT_FRAMES = 1024,
};

/* One VM. */
struct dt_node {
    unsigned number;  /* from 0, in the order of the first event */
    const char *name; /* "shop@host" of an identity, "shop@host, OS process 4711" if several have
                         that; else "host, OS process 4711"; never NULL */
    const char *hostname;         /* "" if unknown */
    int64_t os_pid;               /* DT_NO_VALUE if unknown */
    const char *otp;              /* its release, "" if unknown */
    const struct dt_clock *clock; /* its host's; NULL if the recording has one */
    int64_t first, last;          /* times of its first and last event */
    bool has_deliveries;          /* of messages: one of its traces has an event class for them */
    void *of_sink;
};

/* A process that waits for a file stays on a dirty I/O scheduler meanwhile, and uses no CPU. */
enum dt_scheduler_kind {
    DT_SCHEDULER_NORMAL, /* also where the trace does not tell */
    DT_SCHEDULER_DIRTY_CPU,
    DT_SCHEDULER_DIRTY_IO,
};
extern const char *const dt_scheduler_kind_names[];

/* A thread that runs processes: a scheduler's. */
struct dt_scheduler {
    unsigned number;
    struct dt_node *node;
    int64_t id;                  /* vtid, or the CPU */
    bool is_cpu;                 /* the trace has no vtid, so the CPU stands in for the scheduler */
    enum dt_scheduler_kind kind; /* by the thread's name */
    const char *name;            /* "scheduler 1", "dirty I/O scheduler 3", "CPU 0", ... */
    void *of_sink;
};

/* The VM tells when a process starts and stops running, not why it stops. A process that is
   preempted looks like one that waits. So a process waits from its `out` to the first arrival: a
   message that is sent to it, or one that is delivered whose send was not recorded. From then on it
   is runnable: the VM runs a process at each arrival, also if its `receive` then does not take the
   message. No message ends timer:sleep/1, and none makes a process runnable that is suspended since
   a port or a connection is busy. So RUNNABLE is never too long but for what another process has
   suspended, until a process_sample shows that; and WAITING may be: its `inferred` is set where
   nothing arrived that ended it.

   A process that calls a port runs on while the port does: both are RUNNING, on one scheduler. */
enum dt_state {
    DT_STATE_UNKNOWN,  /* before the first event that tells */
    DT_STATE_WAITING,  /* not scheduled: waits for a message, was suspended, or was preempted */
    DT_STATE_RUNNABLE, /* waits for a scheduler; always inferred */
    DT_STATE_RUNNING,
    DT_STATE_COLLECTING, /* garbage collection */
    DT_STATE_EXITING,    /* told only where the VM tells its end */
    DT_STATES
};
extern const char *const dt_state_names[DT_STATES];

/* On a scheduler, and not exiting. */
static inline bool dt_runs(enum dt_state state) {
    return state == DT_STATE_RUNNING || state == DT_STATE_COLLECTING;
}

/* On a scheduler. */
static inline bool dt_is_busy(enum dt_state state) {
    return dt_runs(state) || state == DT_STATE_EXITING;
}

enum dt_kind { DT_PROCESS, DT_PORT, DT_FOREIGN /* a process or port of another node */ };
extern const char *const dt_kind_names[];

/* A process or a port, or one of another node of which only the identifier is known. */
struct dt_process {
    enum dt_kind kind;
    uint64_t number; /* unique in the recording: a pid that is used again has another one */
    struct dt_node *node;
    const char *pid;     /* "<0.90.0>", "#Port<0.5>" */
    const char *name;    /* last registered name, "" if none or unknown; of a port its driver or
                            command */
    const char *initial; /* initial call, "" if unknown */
    const char *label;   /* "" if none */
    const char *show;    /* for people: name, else label, else initial call, and the pid: "shop
                            <0.90.0>" */
    struct dt_process *parent; /* of a port its owner; NULL if unknown, or gone */
    const char *group; /* application or supervisor: the name of the nearest named ancestor; "" if
                          unknown */

    int64_t began; /* spawned or opened then; DT_NO_VALUE if it was before the recording */
    int64_t first; /* the first event that named it */
    int64_t ended; /* DT_NO_VALUE while it lives */

    enum dt_state state;
    int64_t since;                  /* of the state */
    struct dt_scheduler *scheduler; /* while it runs, if known */
    uint64_t mailbox; /* messages delivered, not yet taken: unknown to tracers, so messages in
                         flight to it */
    void *of_sink;
};

/* A time in a state. They do not overlap, and come in order for each process. */
struct dt_interval {
    struct dt_process *process;
    enum dt_state state;
    int64_t begin, end;
    bool inferred;
    bool is_open;                   /* cut by the recording's end */
    struct dt_scheduler *scheduler; /* RUNNING, COLLECTING: NULL if unknown */
    const char *in;  /* RUNNING: the function in which it started to run, "" if unknown */
    const char *out; /* WAITING, RUNNABLE: the function in which it stopped, so where it waits, ""
                        if unknown */
    bool is_major;   /* COLLECTING */
    uint64_t reclaimed, heap, old_heap; /* COLLECTING: words, at its end; 0 if it is open */
    int64_t explained; /* COLLECTING: the ns that its words explain, generously; INT64_MAX if they
                          are unknown */
};

/* The longest that a collection of so many words takes. The slowest ones of 10^5 words and more, on
   a machine with twice as many busy threads as CPUs, took 22 ns per word. */
static inline int64_t dt_collection_ns(uint64_t words) {
    enum { LEAST_NS = 1000 * 1000, PER_WORD_NS = 100 };

    return LEAST_NS + (int64_t)MIN(words, INT64_MAX / PER_WORD_NS / 2) * PER_WORD_NS;
}

/* A collection that took longer than its words explain: the system may have taken the CPU from its
   thread meanwhile, or it freed large binaries. */
static inline bool dt_is_stretched(const struct dt_interval *i) {
    return i->state == DT_STATE_COLLECTING && i->end - i->begin > i->explained;
}

enum dt_left {
    DT_LEFT_RETURN,
    DT_LEFT_EXCEPTION,
    DT_LEFT_TAIL_CALL, /* inferred: its caller's return came without its own */
    DT_LEFT_EXIT,      /* the process exited */
    DT_LEFT_UNKNOWN,   /* the recording ended, events were lost, or no return is traced */
};
extern const char *const dt_left_names[];

/* A call: a frame of a process's stack. Told at its begin and at its end; frames of a process nest.
   An inferred one is told at its end, with the time from which the process's calls are known as its
   begin. A call whose return is not traced ends at the process's next call, or when it stops. */
struct dt_frame {
    struct dt_process *process;
    uint64_t number;
    const char *entry; /* "lists:sort/1" */
    unsigned depth;    /* 0: outermost known */
    int64_t begin, end;
    enum dt_left left;
    const char *class; /* EXCEPTION: "error", ...; else "" */
    const char
        *value;    /* of function_value or function_reason, "" if unknown; valid during the call */
    bool inferred; /* its begin is unknown: it was entered before the recording */
    bool has_return; /* a return is traced for this function, so `end` is measured */
    int64_t own;     /* ns without callees */
    int64_t waited;  /* ns of it in which the process did not run, where that is known; else
                        DT_NO_VALUE */
    void *of_sink;
};

enum dt_matched {
    DT_MATCHED_NOT,    /* sent, no delivery was seen; or delivered, no send was seen */
    DT_MATCHED_SENDER, /* exact: message_delivery names the sender; in order for this pair, with
                          equal text */
    DT_MATCHED_TOKEN,  /* exact: seq_trace's serial */
    DT_MATCHED_ORDER,  /* inferred: the oldest with equal text to this receiver */
    DT_MATCHED_EARLY, /* the same, and its delivery was recorded before its send: of two nodes whose
                         clocks differ */
    DT_MATCHED_RAN,   /* inferred: no deliveries are recorded, and its receiver has begun or stopped
                         to run since, or is a port */
};
extern const char *const dt_matched_names[];

static inline bool dt_is_inferred(enum dt_matched matched) {
    return matched == DT_MATCHED_ORDER || matched == DT_MATCHED_EARLY || matched == DT_MATCHED_RAN;
}

/* A message. `sent` or `delivered` is DT_NO_VALUE where the trace has only the other. */
struct dt_message {
    uint64_t number;
    struct dt_process *from; /* NULL if unknown */
    struct dt_process *to;   /* NULL for a name or alias that is not known */
    const char *to_text;     /* the receiver as the sender names it, "" if unknown */
    const char *text;        /* "" if unknown */
    const char *label;       /* of seq_trace, "" if it has none or that is not known yet */
    const char *timer; /* "clock_service" for a timer's, another node's name for a message from
                          there; else "" */
    int64_t sent, delivered;
    enum dt_matched matched;
    bool is_dead;  /* the receiver had exited, or no process had the name */
    int64_t early; /* MATCHED_EARLY: its delivery was recorded so many ns before its send, and
                      `delivered` is `sent`; else 0 */
};

enum dt_outcome {
    DT_OUTCOME_REPLY,
    DT_OUTCOME_TIMEOUT, /* inferred: the caller went on without the reply */
    DT_OUTCOME_DOWN,    /* the server exited, or there was none */
    DT_OUTCOME_UNKNOWN, /* the recording ended, or the caller exited for another reason */
};
extern const char *const dt_outcome_names[];

/* A call of a gen_server (or gen_statem, gen_event): from {'$gen_call', {From, Tag}, Request} to
 * {Tag, Reply}. */
struct dt_server_call {
    struct dt_process *caller, *server; /* never NULL; a server may be DT_FOREIGN */
    const char *request;                /* the text of Request, maybe cut */
    const char *reply;                  /* "" if unknown */
    int64_t began;                      /* the request was sent */
    int64_t delivered;                  /* it reached the server; DT_NO_VALUE */
    int64_t taken; /* the server started to work on it: after its last reply or, if it was idle,
                      when it ran next; inferred; DT_NO_VALUE */
    int64_t ended; /* the reply was sent, the server exited, or the caller went on */
    enum dt_outcome outcome;
};

/* A span of dyntrace:span/2. Spans of a process may overlap in recordings that lost events. */
struct dt_span {
    struct dt_process *process;
    uint64_t id;
    const char *name;
    int64_t begin; /* of a span whose start was not recorded: computed from its duration */
    int64_t end;
    const char *outcome; /* "" if it is open */
    bool is_open;
};

/* What happens at one time, told as it is recorded: marks, log lines, the VM's own events, traces
   of users, registrations, links, what is written to ports, nodes that come and go. */
struct dt_instant {
    const struct dt_recorded *event;
    struct dt_node *node;
    struct dt_process *process; /* whom it is about; NULL if the node */
    struct dt_process *other;   /* of a link the other end, of a busy port the port; else NULL */
};

/* A process or port that exits. */
struct dt_exit {
    struct dt_process *process;
    int64_t time;
    const char *reason;         /* text */
    bool is_crash;              /* not an orderly end: model/entities/ends.h */
    struct dt_process **linked; /* those linked to it, as far as links were recorded */
    unsigned links;
};

/* Events that the tracer or LTTng could not record. */
struct dt_lost {
    struct dt_node *node; /* NULL if the trace does not tell */
    const char *stream;   /* for people: "CPU 1" */
    int64_t begin, end;   /* they were lost between these times */
    uint64_t count;       /* 0 if unknown */
};

#endif
