#include "model/parts/scheduling.h"

#include <string.h>

#include "model/entities/processes.h"
#include "model/entities/schedulers.h"
#include "model/parts/held_events.h"

/* Sizes in words; of memory blocks, which may be only partly used. */
struct heap {
    uint64_t reclaimed, heap, old_heap, binaries;
};

enum {
    /* A sample may have read the state up to this long before its event. */
    OLDEST_STATE_NS = 1000 * 1000 * 1000,
    /* A longer first run that no sample confirms is discarded: the process has probably made itself
       sensitive, so that no more of its events are recorded. */
    FIRST_RUN_NS = 1000 * 1000 * 1000,
    /* A process that has no event for longer after a send, and does not stop, copies the message: a
       time slice of ordinary code is shorter. */
    COPY_NS = 5 * 1000 * 1000,
    /* For each message in the queue, a collection reads as many words, each elsewhere in memory. */
    WORDS_OF_MESSAGE = 10,
};

/* Of a process. */
struct run_state {
    const char *in, *out; /* the functions in which it last started and stopped to run */
    enum dt_state before_gc;
    struct heap at_gc_start;
    bool is_major;
    bool is_displaced;     /* another process has run in its place, so it may have stopped */
    bool ignores_messages; /* it does not run, and messages do not wake it */
    bool is_seen;          /* a sample has seen it run */
    uint64_t queue;        /* messages in its queue in the last sample */
    unsigned losses;       /* the number of losses of the node that its state reflects */
    int64_t sent;          /* when it last sent a message */
    /* While it is runnable because of a message: the sender's scheduler, NULL if unknown, and the
       sender. */
    struct scheduler *waker_on;
    uint64_t waker;
    /* The message that made it run, if its copy took long: sent, arrived; else DT_NO_VALUE. */
    int64_t copy_began, copy_ended;
    int64_t runnable; /* ns that it has waited for a scheduler, without the current interval */
};

/* The functions in which a process stops and messages do not wake it. It may also be preempted
   there; then it is already runnable. */
static const char *const sleeping_functions[] = {
    "timer:sleep/1", /* waits for its timeout: the VM runs it at each message, and it stops again */
    /* Suspended until a port, or the connection to a node, is no longer busy. */
    "erlang:send/2",
    "erlang:send/3",
    "erlang:bif_return_trap/2",
    "erts_internal:dsend_continue_trap/1",
    "erts_internal:port_command/3",
};

static bool ignores_messages_in(const char *function) {
    for (unsigned i = 0; i < G_N_ELEMENTS(sleeping_functions); i++)
        if (strcmp(sleeping_functions[i], function) == 0)
            return true;
    return false;
}

const char *dt_started_in(const struct process *p) {
    return p->run_state->in;
}

const char *dt_stopped_in(const struct process *p) {
    return p->run_state->out;
}

/* -- Intervals ---------------------------------------------------------------------- */

struct ending {
    int64_t time;
    bool inferred, is_open, is_unexplained;
    struct heap heap;
    int64_t explained; /* of a collection; 0: unknown */
};

static void emit(const struct process *p, const struct ending *end) {
    const struct run_state *of = p->run_state;
    enum dt_state state = p->seen.state;
    struct dt_interval report = {
        .process = (struct dt_process *)&p->seen,
        .state = state,
        .begin = p->seen.since,
        .end = end->time,
        .inferred = end->inferred || state == DT_STATE_RUNNABLE,
        .is_open = end->is_open,
        .is_unexplained = state == DT_STATE_WAITING && end->is_unexplained,
        .scheduler = dt_runs(state) ? p->seen.scheduler : NULL,
        .in = state == DT_STATE_RUNNING ? of->in : "",
        .out = state == DT_STATE_WAITING || state == DT_STATE_RUNNABLE ? of->out : "",
        .is_major = state == DT_STATE_COLLECTING && of->is_major,
        .reclaimed = end->heap.reclaimed,
        .heap = end->heap.heap,
        .old_heap = end->heap.old_heap,
        .binaries = end->heap.binaries,
        .before = of->at_gc_start.heap + of->at_gc_start.old_heap,
        .explained = end->explained ? end->explained : INT64_MAX,
    };

    if (state != DT_STATE_UNKNOWN && report.end >= report.begin)
        DT_EMIT(p->node->world, interval, &report);
}

int64_t dt_runnable_ns(const struct process *p) {
    int64_t current = p->seen.state == DT_STATE_RUNNABLE ? p->node->world->now - p->seen.since : 0;

    return p->run_state->runnable + MAX(current, 0);
}

static void change(struct process *p, enum dt_state state, const struct ending *end) {
    emit(p, end);
    if (p->seen.state == DT_STATE_RUNNABLE)
        p->run_state->runnable += MAX(end->time - p->seen.since, 0);
    p->seen.state = state;
    p->seen.since = end->time;
}

static void change_now(struct process *p, enum dt_state state) {
    change(p, state, &(struct ending){.time = p->node->world->now});
}

static struct process **place_of(const struct process *p, struct scheduler *s) {
    return p->seen.kind == DT_PORT ? &s->port : &s->runs;
}

void dt_scheduling_leave(struct process *p) {
    struct scheduler *s = (struct scheduler *)p->seen.scheduler;

    if (s && *place_of(p, s) == p)
        *place_of(p, s) = NULL;
    p->seen.scheduler = NULL;
    p->run_state->is_displaced = false;
}

static bool has_state(const struct process *p) {
    return p->seen.state != DT_STATE_UNKNOWN;
}

/* Applies new losses of the node: the known state ends at the begin of the first. */
static void settle(struct process *p) {
    const GArray *losses = p->node->losses;
    unsigned *reflected = &p->run_state->losses;
    int64_t begin = INT64_MAX;

    if (*reflected == losses->len)
        return;
    /* Losses of several streams are reported in the order of their ends. */
    for (; *reflected < losses->len; ++*reflected)
        begin = MIN(begin, g_array_index(losses, int64_t, *reflected));
    if (!has_state(p))
        return;
    change(p, DT_STATE_UNKNOWN,
           &(struct ending){.time = MAX(begin, p->seen.since), .inferred = true});
    dt_scheduling_leave(p);
}

/* The time when it stopped running is unknown, because a process that is no longer traced has no
   events. Its run therefore ends at its begin. */
static void stop_unseen(struct process *p) {
    change(p, DT_STATE_UNKNOWN, &(struct ending){.time = p->seen.since, .inferred = true});
}

static bool is_first_run(const struct process *p) {
    return p->seen.kind == DT_PROCESS && !*p->run_state->out && !p->run_state->is_seen;
}

void dt_scheduling_cut(struct process *p) {
    settle(p);
    /* It is unknown whether an exiting process still runs. */
    if (p->seen.state == DT_STATE_EXITING)
        p->seen.state = DT_STATE_UNKNOWN;
    if (dt_runs(p->seen.state) &&
        (p->run_state->is_displaced ||
         (is_first_run(p) && p->node->world->now - p->seen.since > FIRST_RUN_NS)))
        stop_unseen(p);
    change(p, DT_STATE_UNKNOWN, &(struct ending){.time = p->node->world->now, .is_open = true});
    dt_scheduling_leave(p);
}

/* -- Events of the VM --------------------------------------------------------------- */

/* A scheduler runs one process at a time, so the previous one has stopped. If the scheduler is only
   known by its CPU, the CPU may have switched threads, and the previous process may still run. */
static void displace(struct process *p, const struct scheduler *s) {
    if (!s->seen.is_cpu && dt_runs(p->seen.state)) {
        stop_unseen(p);
        DT_RUN_HOOKS(p->node->world, scheduled, p, false);
    }
    p->run_state->is_displaced = true;
    p->seen.scheduler = NULL;
}

static void take(struct process *p, struct scheduler *s) {
    if (s->runs && s->runs != p && p->seen.kind == DT_PROCESS)
        displace(s->runs, s);
    if (s->port && s->port != p)
        displace(s->port, s);
    s->port = NULL;
    *place_of(p, s) = p;
    p->seen.scheduler = &s->seen;
}

/* Whether it has no event since its last send, which was long ago. */
static bool is_copying(const struct process *p) {
    return p->seen.state == DT_STATE_RUNNING && p->run_state->sent >= p->seen.since &&
           p->node->world->now - p->run_state->sent >= COPY_NS;
}

static bool is_waker(const struct process *sender, const struct process *p) {
    return sender && sender->seen.number == p->run_state->waker &&
           sender->run_state->sent == p->seen.since && is_copying(sender);
}

/* A message arrives when its copy is complete, not when it is sent. Until then, the receiver was
   not runnable. It may run before the sender's next event. */
static void wait_for_copy(struct process *p) {
    struct run_state *of = p->run_state;
    const struct scheduler *s = g_steal_pointer(&of->waker_on);
    int64_t now = p->node->world->now;

    of->copy_began = of->copy_ended = DT_NO_VALUE;
    if (!s || p->seen.state != DT_STATE_RUNNABLE)
        return;
    if (is_waker(s->runs, p))
        of->copy_ended = now;
    else if (s->copy_began == p->seen.since)
        of->copy_ended = s->copy_ended;
    else
        return;
    of->copy_began = p->seen.since;
    p->seen.state = DT_STATE_WAITING;
    change(p, of->copy_ended < now ? DT_STATE_RUNNABLE : DT_STATE_UNKNOWN,
           &(struct ending){.time = of->copy_ended, .inferred = true});
}

int64_t dt_copy_began(const struct process *p) {
    return p->run_state->copy_began;
}

int64_t dt_copy_ended(const struct process *p) {
    return p->run_state->copy_ended;
}

void dt_scheduling_sent(struct node *node, struct process *from, struct process *to,
                        const char *text) {
    (void)text;
    if (!from)
        return;
    from->run_state->sent = node->world->now;
    if (!to || to->seen.state != DT_STATE_RUNNABLE || to->seen.since != node->world->now ||
        !from->seen.scheduler || from->seen.scheduler->is_cpu)
        return;
    to->run_state->waker_on = (struct scheduler *)from->seen.scheduler;
    to->run_state->waker = from->seen.number;
}

static void in(struct process *p, struct scheduler *s, const char *entry) {
    settle(p);
    wait_for_copy(p);
    if (dt_runs(p->seen.state))
        stop_unseen(p);
    else if (p->seen.state != DT_STATE_RUNNABLE)
        /* No recorded event has woken it. */
        change(p, DT_STATE_UNKNOWN,
               &(struct ending){
                   .time = p->node->world->now, .inferred = true, .is_unexplained = true});
    change_now(p, DT_STATE_RUNNING);
    p->run_state->in = dt_function(p->node->world, entry);
    dt_scheduling_leave(p);
    if (s)
        take(p, s);
    DT_RUN_HOOKS(p->node->world, scheduled, p, true);
}

static void out(struct process *p, const char *entry) {
    struct scheduler *s = (struct scheduler *)p->seen.scheduler;

    settle(p);
    if (s && is_copying(p)) {
        s->copy_began = p->run_state->sent;
        s->copy_ended = p->node->world->now;
    }
    if (p->seen.state == DT_STATE_COLLECTING)
        change(p, DT_STATE_WAITING, &(struct ending){.time = p->node->world->now, .is_open = true});
    else if (p->seen.state == DT_STATE_RUNNING)
        change_now(p, DT_STATE_WAITING);
    else
        /* Its `in` was lost, or was before the recording: its state until now is unknown. */
        p->seen.since = p->node->world->now;
    p->seen.state = DT_STATE_WAITING;
    p->run_state->out = dt_function(p->node->world, entry);
    p->run_state->ignores_messages = ignores_messages_in(entry);
    dt_scheduling_leave(p);
    DT_RUN_HOOKS(p->node->world, scheduled, p, false);
}

static void exiting_in(struct process *p, struct scheduler *s) {
    settle(p);
    change_now(p, DT_STATE_EXITING);
    dt_scheduling_leave(p);
    if (s)
        take(p, s);
}

static void exiting_out(struct process *p) {
    settle(p);
    change_now(p, DT_STATE_UNKNOWN);
    dt_scheduling_leave(p);
}

void dt_scheduling_exited(struct process *p, const char *reason) {
    (void)reason;
    settle(p);
    if (p->seen.state != DT_STATE_EXITING)
        change_now(p, DT_STATE_EXITING);
}

static void scheduled(struct node *node, const struct dt_recorded *event, const char *pid,
                      const char *entry, const char *type) {
    struct process *p = dt_process_of(node, pid);
    struct scheduler *s = dt_scheduler_of(node, event);

    if (!p)
        return;
    dt_release(p);
    if (strcmp(type, "in") == 0)
        in(p->has_exited ? dt_process_again(p) : p, s, entry);
    else if (strcmp(type, "in_exiting") == 0)
        exiting_in(p, s);
    else if (strcmp(type, "out") == 0 && !p->has_exited)
        out(p, entry);
    else /* out_exiting, out_exited */
        exiting_out(p);
}

/* A process that was preempted looks like one that waits: see dt_state. */
void dt_scheduling_arrived(struct process *p) {
    settle(p);
    if (p->seen.state == DT_STATE_WAITING && !p->run_state->ignores_messages)
        change_now(p, DT_STATE_RUNNABLE);
}

/* Tracers do not see when a process is suspended. If a sample shows that it is, no message has made
   it runnable, and none will. Nor do tracers see when a process that is no longer traced stops
   running. The state in a sample may be up to OLDEST_STATE_NS old. */
static void sampled(struct node *node, const struct dt_process_sample *e) {
    struct process *p = dt_process_of(node, e->pid);
    bool is_suspended = strcmp(e->state, "suspended") == 0;

    if (!p || p->has_exited)
        return;
    p->run_state->is_seen |= strcmp(e->state, "running") == 0;
    p->run_state->queue = e->queue;
    if (!is_suspended && strcmp(e->state, "waiting") != 0)
        return;
    settle(p);
    if (dt_runs(p->seen.state) && node->world->now - p->seen.since > OLDEST_STATE_NS) {
        stop_unseen(p);
        dt_scheduling_leave(p);
        DT_RUN_HOOKS(node->world, scheduled, p, false);
    }
    if (!is_suspended || (p->seen.state != DT_STATE_WAITING && p->seen.state != DT_STATE_RUNNABLE))
        return;
    p->seen.state = DT_STATE_WAITING;
    p->run_state->ignores_messages = true;
}

/* -- Garbage collection ------------------------------------------------------------- */

/* The longest expected duration, by the words that it may have read or written, and the messages in
   the queue. A minor collection does not touch the old heap, except for the words that it moves
   there. */
static int64_t explained(const struct run_state *of, const struct heap *after, bool is_major) {
    const struct heap *before = &of->at_gc_start;
    uint64_t words = before->heap + after->heap + after->reclaimed + of->queue * WORDS_OF_MESSAGE;

    if (!before->heap && !after->heap)
        return 0;
    if (is_major)
        words += before->old_heap + after->old_heap;
    else if (after->old_heap > before->old_heap)
        words += after->old_heap - before->old_heap;
    return dt_collection_ns(words);
}

static void gc_start(struct node *node, const char *pid, bool is_major, const struct heap *heap) {
    struct process *p = dt_process_of(node, pid);

    if (!p || p->has_exited)
        return;
    settle(p);
    if (p->seen.state == DT_STATE_COLLECTING)
        /* The end of the previous collection was lost. */
        change(p, p->run_state->before_gc,
               &(struct ending){.time = p->node->world->now, .inferred = true, .is_open = true});
    p->run_state->before_gc = p->seen.state;
    p->run_state->at_gc_start = *heap;
    change_now(p, DT_STATE_COLLECTING);
    p->run_state->is_major = is_major;
}

static void gc_end(struct node *node, const char *pid, bool is_major, const struct heap *heap) {
    struct process *p = dt_process_of(node, pid);

    if (!p || p->has_exited)
        return;
    settle(p);
    if (p->seen.state != DT_STATE_COLLECTING)
        return;
    p->run_state->is_major = is_major;
    change(p, p->run_state->before_gc,
           &(struct ending){.time = p->node->world->now,
                            .heap = *heap,
                            .explained = explained(p->run_state, heap, is_major)});
}

#define AT_START(e)                                                                                \
    &(struct heap) {                                                                               \
        .heap = (e).heap, .old_heap = (e).old_heap                                                 \
    }
#define AT_END(e)                                                                                  \
    &(struct heap) {                                                                               \
        .reclaimed = (e).reclaimed, .heap = (e).heap, .old_heap = (e).old_heap,                    \
        .binaries = (e).binaries                                                                   \
    }

void dt_scheduling_event(struct node *node, const struct dt_recorded *event) {
    const union dt_event *e = &event->fields;

    switch (event->probe) {
    case DT_process_scheduled:
        scheduled(node, event, e->process_scheduled.pid, e->process_scheduled.entry,
                  e->process_scheduled.type);
        break;
    case DT_port_scheduled:
        scheduled(node, event, e->port_scheduled.port, e->port_scheduled.entry,
                  e->port_scheduled.type);
        break;
    case DT_process_sample:
        sampled(node, &e->process_sample);
        break;
    case DT_gc_minor_start:
        gc_start(node, e->gc_minor_start.pid, false, AT_START(e->gc_minor_start));
        break;
    case DT_gc_major_start:
        gc_start(node, e->gc_major_start.pid, true, AT_START(e->gc_major_start));
        break;
    case DT_gc_minor_end:
        gc_end(node, e->gc_minor_end.pid, false, AT_END(e->gc_minor_end));
        break;
    case DT_gc_major_end:
        gc_end(node, e->gc_major_end.pid, true, AT_END(e->gc_major_end));
        break;
    default:
        break;
    }
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_scheduling_new(struct node *node) {
    node->losses = g_array_new(false, false, sizeof(int64_t));
}

void dt_scheduling_free(struct node *node) {
    g_array_free(node->losses, true);
}

void dt_scheduling_process(struct process *p) {
    struct run_state *of = p->run_state = g_new0(struct run_state, 1);

    of->in = of->out = "";
    of->sent = of->copy_began = of->copy_ended = DT_NO_VALUE;
    of->losses = p->node->losses->len;
}

void dt_scheduling_lost(struct node *node, int64_t begin) {
    GHashTableIter i;
    void *of;

    g_array_append_val(node->losses, begin);
    /* Other processes are settled when they are next used. */
    g_hash_table_iter_init(&i, node->schedulers->by_id);
    while (g_hash_table_iter_next(&i, NULL, &of)) {
        const struct scheduler *s = of;

        if (s->runs)
            settle(s->runs);
        if (s->port)
            settle(s->port);
    }
}
