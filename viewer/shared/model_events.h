/*
 * The events that the model reports to a sink.
 *
 * The model calls the functions of struct dt_sink (sink.h). All times are ns since the epoch. They
 * never decrease from call to call, except for
 *
 *   - begin times of events that are reported at their end: intervals, server calls, spans,
 *     inferred frames
 *   - deliveries and returns, which are reported up to 0.1 ms late if a second probe completes them
 *   - deliveries of messages from other recorded nodes: those with a token are reported when the
 *     receiver takes them, those without a recorded send up to 10 s late
 *   - deliveries without their seq_trace_receive, which are reported at the end or at a loss
 *   - ends of intervals that a loss cuts, which are reported when the process is next used
 *   - ends of runs whose end is unknown, which equal their begins
 *   - losses, and ends of calls that a loss cuts, which are reported after the loss
 *
 * The model reports nothing that the trace lacks. Inferred data has `inferred` set.
 *
 * Where events were lost, states are unknown until the next event that shows them, stacks are
 * empty, and messages in flight are reported as unmatched.
 *
 * Memory is bounded by the live state: live processes and ports, messages in flight (at most
 * DT_MESSAGES_IN_FLIGHT), and frames (DT_FRAMES per process). A process that has exited is released
 * after `process_gone`, which is called when 10,000 other processes have exited after it and no
 * message in flight or pending call refers to it. Sinks may keep data in `of_sink` and free it in
 * `process_gone`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "shared/recorded.h"

enum {
    /* Messages in flight per node; beyond this limit, the oldest are reported as unmatched. */
    DT_MESSAGES_IN_FLIGHT = 200000,
    /* Frames per process; deeper calls are only counted. */
    DT_FRAMES = 1024,
};

/* One VM. */
struct dt_node {
    unsigned number;  /* from 0, in the order of the first event */
    const char *name; /* "shop@host" by its identity; "shop@host, OS process 4711" if several nodes
                         have this name; "host, OS process 4711" without identity; never NULL */
    const char *hostname;         /* "" if unknown */
    int64_t os_pid;               /* DT_NO_VALUE if unknown */
    const char *otp;              /* its release, "" if unknown */
    const struct dt_clock *clock; /* of its host; NULL if the recording has a single clock */
    int64_t first, last;          /* times of its first and last event */
    int64_t untraced;             /* ns between them without traced processes; set at its end */
    bool was_untraced;            /* for longer than it takes to set their trace flags */
    bool has_deliveries;          /* one of its traces has an event class for message deliveries */
    bool has_lives;               /* and event classes for spawns and exits */
    bool is_elixir;               /* Elixir's application runs in it */
    void *of_sink;
};

/* A process that waits for a file occupies a dirty I/O scheduler, but uses no CPU. */
enum dt_scheduler_kind {
    DT_SCHEDULER_NORMAL, /* also if unknown */
    DT_SCHEDULER_DIRTY_CPU,
    DT_SCHEDULER_DIRTY_IO,
};
extern const char *const dt_scheduler_kind_names[];

/* A scheduler thread, which runs processes. */
struct dt_scheduler {
    unsigned number;
    struct dt_node *node;
    int64_t id;                  /* vtid, or the CPU */
    bool is_cpu;                 /* `id` is the CPU, because the trace has no vtid */
    enum dt_scheduler_kind kind; /* derived from the thread's name */
    const char *name;            /* "scheduler 1", "dirty I/O scheduler 3", "CPU 0", ... */
    void *of_sink;
};

/* The VM reports when a process starts and stops running, but not why it stops: a preempted process
   looks like a waiting one. The model therefore assumes that a process waits from its `out` to the
   first arrival: a message sent to it, or a delivered message whose send was not recorded. From
   then on it is runnable, because the VM runs a process at each arrival, even if its `receive` does
   not take the message. A message does not wake a process in timer:sleep/1, or one suspended on a
   busy port or connection. A message that takes long to copy arrives at the end of its copy: if the
   sender runs on for some milliseconds without an event, the receiver is not RUNNABLE until the
   sender stops, or until it runs itself. RUNNABLE is therefore never too long, except for processes
   suspended by another process, until a process_sample shows that. WAITING may be too long:
   `inferred` is set if no arrival ended it.

   A process that calls a port keeps running while the port runs: both are RUNNING on the same
   scheduler. */
enum dt_state {
    DT_STATE_UNKNOWN,  /* before the first event that shows it */
    DT_STATE_WAITING,  /* not scheduled: waits for a message, was suspended, or was preempted */
    DT_STATE_RUNNABLE, /* waits for a scheduler; always inferred */
    DT_STATE_RUNNING,
    DT_STATE_COLLECTING, /* garbage collection */
    DT_STATE_EXITING,    /* reported only if the VM reports its end */
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
    uint64_t number; /* unique in the recording; a reused pid gets a new number */
    struct dt_node *node;
    const char *pid;     /* "<0.90.0>", "#Port<0.5>" */
    const char *name;    /* last registered name, "" if none or unknown; for a port, its driver or
                            command */
    const char *initial; /* initial call, "" if unknown */
    const char *label;   /* "" if none */
    const char *show;    /* to display: name, else label, else initial call, and the pid: "shop
                            <0.90.0>" */
    struct dt_process *parent; /* for a port, its owner; NULL if unknown or gone */
    const char *group; /* application or supervisor: the name of the nearest named ancestor; "" if
                          unknown */

    int64_t began; /* time of the spawn or open; DT_NO_VALUE if before the recording */
    int64_t first; /* time of the first event that named it */
    int64_t ended; /* DT_NO_VALUE while it lives */

    enum dt_state state;
    int64_t since;                  /* begin of the state */
    struct dt_scheduler *scheduler; /* while it runs, if known */
    uint64_t mailbox; /* messages in flight to it; tracers do not see which delivered messages it
                         has taken */
    void *of_sink;
};

/* A period in one state. Intervals of a process do not overlap and are reported in order. */
struct dt_interval {
    struct dt_process *process;
    enum dt_state state;
    int64_t begin, end;
    bool inferred;
    bool is_open;                   /* cut by the end of the recording */
    bool is_unexplained;            /* WAITING: it ran then, but no recorded event has woken it */
    struct dt_scheduler *scheduler; /* RUNNING, COLLECTING: NULL if unknown */
    const char *in;  /* RUNNING: the function in which it started to run, "" if unknown */
    const char *out; /* WAITING, RUNNABLE: the function in which it stopped and waits, "" if
                        unknown */
    bool is_major;   /* COLLECTING */
    uint64_t reclaimed, heap, old_heap; /* COLLECTING: words, at its end; 0 if it is open */
    uint64_t before;                    /* COLLECTING: words of the heaps at its begin */
    uint64_t binaries; /* COLLECTING: the same, outside of the heaps, which refer to them */
    int64_t explained; /* COLLECTING: the longest expected ns for its words; INT64_MAX if they are
                          unknown */
};

enum { DT_BYTES_PER_WORD = 8 };

/* The longest expected duration of a collection of this many words. On a machine with twice as many
   busy threads as CPUs, the slowest collections of 10^5 words and more took 22 ns per word. */
static inline int64_t dt_collection_ns(uint64_t words) {
    enum { LEAST_NS = 1000 * 1000, PER_WORD_NS = 100 };

    return LEAST_NS + (int64_t)MIN(words, INT64_MAX / PER_WORD_NS / 2) * PER_WORD_NS;
}

/* A collection that took longer than expected for its words: the OS may have preempted its thread,
   or it freed large binaries. */
static inline bool dt_is_stretched(const struct dt_interval *i) {
    return i->state == DT_STATE_COLLECTING && i->end - i->begin > i->explained;
}

enum dt_left {
    DT_LEFT_RETURN,
    DT_LEFT_EXCEPTION,
    DT_LEFT_TAIL_CALL, /* inferred: its caller returned, and it did not */
    DT_LEFT_EXIT,      /* the process exited */
    DT_LEFT_UNKNOWN,   /* the recording ended, events were lost, or no return is traced */
};
extern const char *const dt_left_names[];

/* A call: a frame of a process's stack. It is reported at its begin and at its end; the frames of a
   process nest. An inferred frame is reported only at its end; its begin is the time from which the
   calls of the process are known. A call whose return is not traced ends at the next call of the
   process, or when the process stops running. */
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
    bool inferred; /* its begin is unknown: before the recording or in a loss */
    bool has_return; /* a return is traced for this function, so `end` is measured */
    int64_t own;     /* ns without callees */
    int64_t waited;  /* ns of the call in which the process did not run; DT_NO_VALUE if that is
                        unknown */
};

/* Whether its begin and end are measured. */
static inline bool dt_is_measured(const struct dt_frame *frame) {
    return !frame->inferred && (frame->left == DT_LEFT_RETURN || frame->left == DT_LEFT_EXCEPTION ||
                                (frame->left == DT_LEFT_TAIL_CALL && frame->has_return));
}

enum dt_matched {
    DT_MATCHED_NOT,    /* only the send or only the delivery was recorded */
    DT_MATCHED_SENDER, /* exact: message_delivery names the sender; the oldest of this sender with
                          equal text */
    DT_MATCHED_TOKEN,  /* exact: seq_trace's serial */
    DT_MATCHED_ORDER,  /* inferred: the oldest with equal text to this receiver */
    DT_MATCHED_EARLY, /* the same, but the delivery was recorded before the send, because the clocks
                         of the two nodes differ */
    DT_MATCHED_RAN,   /* inferred: deliveries are not recorded, and the receiver has since started
                         or stopped running, or is a port */
};
extern const char *const dt_matched_names[];

static inline bool dt_is_inferred(enum dt_matched matched) {
    return matched == DT_MATCHED_ORDER || matched == DT_MATCHED_EARLY || matched == DT_MATCHED_RAN;
}

/* A message. `sent` or `delivered` is DT_NO_VALUE if the trace has only the other. */
struct dt_message {
    uint64_t number;
    struct dt_process *from; /* NULL if unknown */
    struct dt_process *to;   /* NULL for an unknown name or alias */
    const char *to_text;     /* the receiver as the sender names it, "" if unknown */
    const char *text;        /* "" if unknown */
    const char *label;       /* of seq_trace, "" if it has none or it is not yet known */
    const char *timer; /* "clock_service" if a timer sent it, the name of the sending node if that
                          is another node; else "" */
    int64_t sent, delivered;
    enum dt_matched matched;
    bool is_dead;  /* the receiver had exited, or no process had the name */
    int64_t early; /* MATCHED_EARLY: how many ns before its send its delivery was recorded, and
                      `delivered` equals `sent`; else 0 */
};

enum dt_outcome {
    DT_OUTCOME_REPLY,
    DT_OUTCOME_TIMEOUT, /* inferred: the caller continued without the reply */
    DT_OUTCOME_DOWN,    /* the server exited, or there was none */
    DT_OUTCOME_UNKNOWN, /* the recording ended, or the caller exited for another reason */
};
extern const char *const dt_outcome_names[];

/* A call of a gen_server (or gen_statem, gen_event): from {'$gen_call', {From, Tag}, Request} to
 * {Tag, Reply}; or of one of OTP's own servers, such as code_server. */
struct dt_server_call {
    struct dt_process *caller, *server; /* never NULL; a server may be DT_FOREIGN */
    const char *request;                /* the text of Request, possibly truncated */
    const char *reply;                  /* "" if unknown */
    int64_t began;                      /* the request was sent */
    int64_t delivered;                  /* it reached the server; DT_NO_VALUE if unknown */
    int64_t taken;    /* the server started to work on it: after its last reply or, if it was idle,
                         when it ran next; inferred; DT_NO_VALUE if unknown */
    int64_t deferred; /* the server had worked on it without a reply, and waited for other messages;
                         inferred; DT_NO_VALUE if it had not */
    int64_t runnable; /* ns before `taken` in which the server waited for a scheduler */
    int64_t ended;    /* the reply was sent, the server exited, or the caller continued */
    enum dt_outcome outcome;
};

/* What a span of the library telemetry has in addition. */
struct dt_telemetry {
    const char *key; /* whose value is part of the name: "route", "source"; "" if none */
    const char *measurements, *metadata;
};

/* A span of dyntrace:span/2, or of the library telemetry. Spans of a process may overlap if events
   were lost; those of telemetry may overlap in any case. */
struct dt_span {
    struct dt_process *process;
    uint64_t id; /* 0 for telemetry */
    const char *name;
    int64_t begin; /* computed from the duration if the start was not recorded */
    int64_t end;
    const char *outcome; /* "" if it is open */
    bool is_open;
    const struct dt_telemetry *telemetry; /* NULL: a span of dyntrace:span/2 */
};

/* An event at one point in time, reported as recorded: a mark, a log line, an event of the VM
   itself, a user trace, a registration, a link, output to a port, or a node that connects or
   disconnects; or a general one, of a probe without a meaning of its own. */
struct dt_instant {
    const struct dt_recorded *event;
    struct dt_node *node;
    struct dt_process *process; /* the subject; NULL if that is the node */
    struct dt_process *other;   /* the other end of a link, or the busy port; else NULL */
    bool is_general;
};

/* How a process exits: orderly; with a result for its caller as the reason; or by a crash. A crash
   has an error of the VM or a stack trace in its reason, or its process belongs to a supervisor or
   to proc_lib, or linked processes exit because of it. The last is unknown when it exits. */
enum dt_exit_kind { DT_ORDERLY, DT_RESULT, DT_RESULT_OR_CRASH, DT_CRASH };

extern const char *const dt_exit_kind_names[];

/* A process or port that exits. */
struct dt_exit {
    struct dt_process *process;
    int64_t time;
    const char *reason; /* text */
    enum dt_exit_kind kind;
    bool is_logged;             /* only a report of the crash is recorded */
    struct dt_process **linked; /* the processes and ports linked to it, as far as recorded */
    unsigned links;
};

/* Events that the tracer or LTTng could not record. */
struct dt_lost {
    struct dt_node *node; /* NULL if unknown */
    const char *stream;   /* to display: "CPU 1" */
    int64_t begin, end;   /* they were lost between these times */
    uint64_t count;       /* 0 if unknown */
};
