/*
 * The decoders of the provider erlang. They fill the arguments of the probes of a VM that was built
 * with them, as far as tracers get them; the catalogue states the differences.
 */
#include <limits.h>

#include "catalogue/atoms.h"
#include "catalogue/unused.h"
#include "sources/compat/builtins.h"
#include "sources/compat/int32.h"
#include "sources/compat/size.h"
#include "sources/parts.h"

/* -- Nodes ------------------------------------------------------------------------ */

/* The node of the process or port at the other end, if it differs from the node of this end. The
   other end is {Name,Node} or a handle. */
static bool get_other_node(ErlNifEnv *env, ERL_NIF_TERM this, ERL_NIF_TERM other,
                           ERL_NIF_TERM *node) {
    const ERL_NIF_TERM *name_node;
    ERL_NIF_TERM here;
    ErlNifPid local;
    int arity;

    if (enif_get_local_pid(env, other, &local) || enif_is_atom(env, other))
        return false;
    if (enif_get_tuple(env, other, &arity, &name_node) && arity == 2)
        *node = name_node[1];
    else if (!dt_get_node(env, other, node))
        return false;
    return dt_get_node(env, this, &here) && !enif_is_identical(*node, here);
}

/* -- Messages --------------------------------------------------------------------- */

struct message {
    ERL_NIF_TERM from, to, term;
    int32_t label, previous, current;
};

static bool get_sent(const struct dt_traced *trace, struct message *m) {
    *m = (struct message){.from = trace->tracee, .term = trace->term};
    return dt_extra(trace, &m->to);
}

static bool get_received(const struct dt_traced *trace, struct message *m) {
    *m = (struct message){.to = trace->tracee, .term = trace->term};
    return true;
}

/* Only an event of seq_trace has the token. */
static bool get_seq_message(const struct dt_traced *trace, struct message *m) {
    struct dt_seq_info info;
    int label;

    if (!dt_get_seq_info(trace, &info))
        return false;
    *m =
        (struct message){.from = info.from,
                         .to = info.to,
                         .term = info.message,
                         .label = enif_get_int(trace->env, trace->tracee, &label) ? label : INT_MIN,
                         .previous = dt_int32(info.previous),
                         .current = dt_int32(info.current)};
    return true;
}

static enum dt_decoded fill_send(struct dt_traced *trace, const struct message *m,
                                 struct dt_message__send *e) {
    *e = (struct dt_message__send){.size = dt_size(trace->env, m->term),
                                   .label = m->label,
                                   .previous = m->previous,
                                   .current = m->current};
    DT_TRY(e->sender, dt_id(trace, m->from));
    DT_TRY(e->receiver, dt_id(trace, m->to));
    return DT_DECODED;
}

static enum dt_decoded fill_send_remote(struct dt_traced *trace, const struct message *m,
                                        struct dt_message__send__remote *e) {
    ERL_NIF_TERM node;

    if (!get_other_node(trace->env, m->from, m->to, &node))
        return DT_NO_EVENT;
    *e = (struct dt_message__send__remote){.size = dt_size(trace->env, m->term),
                                           .label = m->label,
                                           .previous = m->previous,
                                           .current = m->current};
    DT_TRY(e->sender, dt_id(trace, m->from));
    DT_TRY(e->node_name, dt_id(trace, node));
    DT_TRY(e->receiver, dt_id(trace, m->to));
    return DT_DECODED;
}

static enum dt_decoded fill_receive(struct dt_traced *trace, const struct message *m,
                                    struct dt_message__receive *e) {
    *e = (struct dt_message__receive){.size = dt_size(trace->env, m->term),
                                      .label = m->label,
                                      .previous = m->previous,
                                      .current = m->current};
    DT_TRY(e->receiver, dt_id(trace, m->to));
    return DT_DECODED;
}

static enum dt_decoded fill_queued(struct dt_traced *trace, const struct message *m,
                                   struct dt_message__queued *e) {
    *e = (struct dt_message__queued){.size = dt_size(trace->env, m->term)};
    DT_TRY(e->receiver, dt_id(trace, m->to));
    return DT_DECODED;
}

#define MESSAGE_DECODER(decoder, get, fill, probe)                                                 \
    enum dt_decoded dt_decode_erlang_##decoder(struct dt_traced *trace, union dt_event *event) {   \
        struct message m;                                                                          \
                                                                                                   \
        return get(trace, &m) ? fill(trace, &m, &event->probe) : DT_UNDECODED;                     \
    }

MESSAGE_DECODER(send, get_sent, fill_send, message__send)
MESSAGE_DECODER(send_remote, get_sent, fill_send_remote, message__send__remote)
MESSAGE_DECODER(queued, get_received, fill_queued, message__queued)
MESSAGE_DECODER(received, get_received, fill_receive, message__receive)
MESSAGE_DECODER(seq_send, get_seq_message, fill_send, message__send)
MESSAGE_DECODER(seq_send_remote, get_seq_message, fill_send_remote, message__send__remote)
MESSAGE_DECODER(seq_receive, get_seq_message, fill_receive, message__receive)

/* {'EXIT',From,Reason}, where From is a process or port. */
static bool get_exit(const struct dt_traced *trace, ERL_NIF_TERM *from, ERL_NIF_TERM *reason) {
    const ERL_NIF_TERM *el;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &el) || size != 3 ||
        !enif_is_identical(el[0], atom_EXIT) ||
        !(enif_is_pid(trace->env, el[1]) || enif_is_port(trace->env, el[1])))
        return false;
    *from = el[1];
    *reason = el[2];
    return true;
}

enum dt_decoded dt_decode_erlang_exit_signal(struct dt_traced *trace, union dt_event *event) {
    struct dt_process__exit_signal *e = &event->process__exit_signal;
    ERL_NIF_TERM from, reason;

    if (!get_exit(trace, &from, &reason))
        return DT_NO_EVENT;
    DT_TRY(e->sender, dt_id(trace, from));
    DT_TRY(e->receiver, dt_id(trace, trace->tracee));
    DT_TRY(e->reason, dt_term(trace, reason));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_exit_signal_remote(struct dt_traced *trace,
                                                    union dt_event *event) {
    struct dt_process__exit_signal__remote *e = &event->process__exit_signal__remote;
    ERL_NIF_TERM from, reason, node;

    if (!get_exit(trace, &from, &reason) || !get_other_node(trace->env, trace->tracee, from, &node))
        return DT_NO_EVENT;
    e->label = e->previous = e->current = 0;
    DT_TRY(e->sender, dt_id(trace, from));
    DT_TRY(e->node_name, dt_id(trace, node));
    DT_TRY(e->receiver, dt_id(trace, trace->tracee));
    DT_TRY(e->reason, dt_term(trace, reason));
    return DT_DECODED;
}

/* -- Processes and calls ---------------------------------------------------------- */

enum dt_decoded dt_decode_erlang_spawn(struct dt_traced *trace, union dt_event *event) {
    struct dt_process__spawn *e = &event->process__spawn;
    ERL_NIF_TERM entry;

    if (!dt_extra(trace, &entry))
        return DT_UNDECODED;
    DT_TRY(e->p, dt_id(trace, trace->term));
    DT_TRY(e->mfa, dt_mfa(trace, entry));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_exit(struct dt_traced *trace, union dt_event *event) {
    struct dt_process__exit *e = &event->process__exit;

    DT_TRY(e->p, dt_id(trace, trace->tracee));
    DT_TRY(e->reason, dt_term(trace, trace->term));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_unscheduled(struct dt_traced *trace, union dt_event *event) {
    DT_TRY(event->process__unscheduled.p, dt_id(trace, trace->tracee));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_scheduled(struct dt_traced *trace, union dt_event *event) {
    struct dt_process__scheduled *e = &event->process__scheduled;

    DT_TRY(e->p, dt_id(trace, trace->tracee));
    DT_TRY(e->mfa, dt_where(trace, trace->term));
    return DT_DECODED;
}

/* A process that goes into hibernation was stopped in erlang:hibernate/3. */
static bool is_hibernating(const struct dt_traced *trace) {
    const ERL_NIF_TERM *el;
    int size;

    return enif_get_tuple(trace->env, trace->term, &size, &el) && size == 3 &&
           enif_is_identical(el[0], atom_erlang) && enif_is_identical(el[1], atom_hibernate);
}

enum dt_decoded dt_decode_erlang_hibernate(struct dt_traced *trace, union dt_event *event) {
    struct dt_process__hibernate *e = &event->process__hibernate;

    if (!is_hibernating(trace))
        return DT_NO_EVENT;
    DT_TRY(e->p, dt_id(trace, trace->tracee));
    DT_TRY(e->mfa, dt_mfa(trace, trace->term));
    return DT_DECODED;
}

/* A call fires only the probe of its kind, at entry and at return, so that each is counted once. */
static enum dt_decoded decode_call(struct dt_traced *trace, enum dt_builtin kind, const char **p,
                                   const char **mfa) {
    struct dt_location called;

    if (!dt_get_location(trace, trace->term, &called))
        return DT_UNDECODED;
    if (dt_builtin_of(called.module, called.function, called.arity) != kind)
        return DT_NO_EVENT;
    DT_TRY(*p, dt_id(trace, trace->tracee));
    DT_TRY(*mfa, dt_location_text(trace, &called));
    return DT_DECODED;
}

#define CALL_DECODER(decoder, kind, probe)                                                         \
    enum dt_decoded dt_decode_erlang_##decoder(struct dt_traced *trace, union dt_event *event) {   \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        return decode_call(trace, kind, &e->p, &e->mfa);                                           \
    }

#define FUNCTION_DECODER(decoder, probe)                                                           \
    enum dt_decoded dt_decode_erlang_##decoder(struct dt_traced *trace, union dt_event *event) {   \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        e->depth = 0;                                                                              \
        return decode_call(trace, DT_NOT_BUILTIN, &e->p, &e->mfa);                                 \
    }

FUNCTION_DECODER(call, global__function__entry)
FUNCTION_DECODER(return, function__return)
CALL_DECODER(bif_call, DT_BIF, bif__entry)
CALL_DECODER(bif_return, DT_BIF, bif__return)
CALL_DECODER(nif_call, DT_NIF, nif__entry)
CALL_DECODER(nif_return, DT_NIF, nif__return)

/* -- Garbage collection ----------------------------------------------------------- */

/* The value of one key of the event. */
static bool get_value(const struct dt_traced *trace, ERL_NIF_TERM key, uint64_t *value) {
    return dt_values(trace, &key, &value, 1);
}

#define GC_DECODER(decoder, probe, amount)                                                         \
    enum dt_decoded dt_decode_erlang_##decoder(struct dt_traced *trace, union dt_event *event) {   \
        struct dt_##probe *e = &event->probe;                                                      \
        uint64_t size;                                                                             \
                                                                                                   \
        DT_TRY(e->p, dt_id(trace, trace->tracee));                                                 \
        if (!get_value(trace, atom_wordsize, &size))                                               \
            return DT_UNDECODED;                                                                   \
        e->amount = dt_int32(size);                                                                \
        return DT_DECODED;                                                                         \
    }

GC_DECODER(gc_minor_start, gc_minor__start, need)
GC_DECODER(gc_minor_end, gc_minor__end, reclaimed)
GC_DECODER(gc_major_start, gc_major__start, need)
GC_DECODER(gc_major_end, gc_major__end, reclaimed)

/*
 * The heap's size when the collection started. A process collects from start to end on one thread,
 * and no other process does so there meanwhile. Each probe compares with it once, so that an end
 * whose start was missed, because the probe was not enabled yet, is not compared with an older
 * collection. See ARCHITECTURE.md, "Callback invariants".
 */
static _Thread_local struct {
    ERL_NIF_TERM tracee;
    uint64_t heap;
    bool compared[DT_PROBES];
} collection;

enum dt_decoded dt_decode_erlang_heap_before(struct dt_traced *trace,
                                             DT_UNUSED union dt_event *event) {
    ErlNifPid pid;

    /* Only local pids are single words, which can be compared. */
    if (!enif_get_local_pid(trace->env, trace->tracee, &pid) ||
        !get_value(trace, atom_heap_block_size, &collection.heap))
        return DT_UNDECODED;
    collection.tracee = trace->tracee;
    collection.compared[trace->probe] = false;
    return DT_NO_EVENT;
}

struct change {
    const char *p;
    uint64_t before, after;
};

/* Returns DT_NO_EVENT unless the heap has grown or, if not `grown`, shrunk. */
static enum dt_decoded get_change(struct dt_traced *trace, bool grown, struct change *change) {
    bool *compared = &collection.compared[trace->probe];

    if (!get_value(trace, atom_heap_block_size, &change->after))
        return DT_UNDECODED;
    if (*compared || collection.tracee != trace->tracee)
        return DT_NO_EVENT;
    *compared = true;
    change->before = collection.heap;
    if (change->after == change->before || (change->after > change->before) != grown)
        return DT_NO_EVENT;
    DT_TRY(change->p, dt_id(trace, trace->tracee));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_heap_grow(struct dt_traced *trace, union dt_event *event) {
    struct change c = {.p = NULL};
    enum dt_decoded decoded = get_change(trace, true, &c);

    event->process__heap_grow =
        (struct dt_process__heap_grow){c.p, dt_int32(c.before), dt_int32(c.after)};
    return decoded;
}

enum dt_decoded dt_decode_erlang_heap_shrink(struct dt_traced *trace, union dt_event *event) {
    struct change c = {.p = NULL};
    enum dt_decoded decoded = get_change(trace, false, &c);

    event->process__heap_shrink =
        (struct dt_process__heap_shrink){c.p, dt_int32(c.before), dt_int32(c.after)};
    return decoded;
}

/* -- Every event ------------------------------------------------------------------ */

enum dt_decoded dt_decode_erlang_trace(struct dt_traced *trace, union dt_event *event) {
    struct dt_trace *e = &event->trace;
    ERL_NIF_TERM extra;

    DT_TRY(e->p, dt_id(trace, trace->tracee));
    DT_TRY(e->event, dt_id(trace, trace->tag));
    DT_TRY(e->state, dt_term(trace, trace->state));
    DT_TRY(e->arg1, dt_term(trace, trace->term));
    e->arg2 = "";
    if (dt_extra(trace, &extra))
        DT_TRY(e->arg2, dt_term(trace, extra));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_trace_seq(struct dt_traced *trace, union dt_event *event) {
    struct dt_trace_seq *e = &event->trace_seq;

    DT_TRY(e->state, dt_term(trace, trace->state));
    DT_TRY(e->label, dt_term(trace, trace->tracee));
    DT_TRY(e->seq_info, dt_term(trace, trace->term));
    return DT_DECODED;
}
