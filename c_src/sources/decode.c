/*
 * One decoder per shape of an event. The documentation of erlang:trace/3 describes the trace
 * messages, that of erl_tracer which parts of them are the term and `extra`, and that of seq_trace
 * the sequential ones.
 */
#include "sources/decode.h"

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "sources/call_times.h"
#include "sources/parts.h"
#include "sources/waits.h"
#include "text/term.h"

/* -- Processes, links and scheduling -------------------------------------------- */

enum dt_decoded dt_decode_spawn(struct dt_traced *trace, union dt_event *event) {
    struct dt_process_spawn *e = &event->process_spawn;
    ERL_NIF_TERM entry;

    if (!dt_extra(trace, &entry))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->term));
    DT_TRY(e->parent, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, entry));
    return DT_DECODED;
}

enum dt_decoded dt_decode_exit(struct dt_traced *trace, union dt_event *event) {
    struct dt_process_exit *e = &event->process_exit;

    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->reason, dt_term(trace, trace->term));
    return DT_DECODED;
}

enum dt_decoded dt_decode_name(struct dt_traced *trace, union dt_event *event) {
    struct dt_process_register *e = &event->process_register;

    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->name, dt_id(trace, trace->term));
    e->type = trace->type;
    return DT_DECODED;
}

/* Both ends of a link may be traced. In the event of the passive end, the term is the process or
   port that links, and the tracee is the one that is linked to. */
#define LINK_DECODER(decoder, probe, doer, other)                                                  \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        DT_TRY(e->from, dt_id(trace, trace->doer));                                                \
        DT_TRY(e->to, dt_id(trace, trace->other));                                                 \
        e->type = trace->type;                                                                     \
        return DT_DECODED;                                                                         \
    }

LINK_DECODER(link, process_link, tracee, term)
LINK_DECODER(linked, process_link, term, tracee)
LINK_DECODER(port_link, port_link, tracee, term)
LINK_DECODER(port_linked, port_link, term, tracee)

#define SCHEDULED_DECODER(decoder, probe, field)                                                   \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        DT_TRY(e->field, dt_id(trace, trace->tracee));                                             \
        DT_TRY(e->entry, dt_where(trace, trace->term));                                            \
        e->type = trace->type;                                                                     \
        return DT_DECODED;                                                                         \
    }

SCHEDULED_DECODER(scheduled, process_scheduled, pid)
SCHEDULED_DECODER(port_scheduled, port_scheduled, port)

/* -- Ports ---------------------------------------------------------------------- */

enum dt_decoded dt_decode_port_open(struct dt_traced *trace, union dt_event *event) {
    struct dt_port_open *e = &event->port_open;
    ERL_NIF_TERM driver;

    if (!dt_extra(trace, &driver))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->term));
    DT_TRY(e->driver, dt_id(trace, driver));
    DT_TRY(e->port, dt_id(trace, trace->tracee));
    return DT_DECODED;
}

enum dt_decoded dt_decode_port_exit(struct dt_traced *trace, union dt_event *event) {
    struct dt_port_exit *e = &event->port_exit;

    DT_TRY(e->port, dt_id(trace, trace->tracee));
    DT_TRY(e->reason, dt_term(trace, trace->term));
    return DT_DECODED;
}

/* -- Calls ---------------------------------------------------------------------- */

enum dt_decoded dt_decode_called(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_call *e = &event->function_call;

    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, trace->term));
    e->depth = 0;
    return DT_DECODED;
}

enum dt_decoded dt_decode_returned(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_return *e = &event->function_return;

    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_where(trace, trace->term));
    e->depth = 0;
    return DT_DECODED;
}

/* With the trace flag `arity`, the event has no arguments. */
enum dt_decoded dt_decode_arguments(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_arguments *e = &event->function_arguments;
    struct dt_location call;

    if (!dt_get_location(trace, trace->term, &call))
        return DT_UNDECODED;
    if (!enif_is_list(trace->env, call.arguments))
        return DT_NO_EVENT;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_location_text(trace, &call));
    DT_TRY(e->arguments, dt_text_arguments(trace->text, trace->env, call.arguments));
    return DT_DECODED;
}

enum dt_decoded dt_decode_value(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_value *e = &event->function_value;
    ERL_NIF_TERM value;

    if (!dt_extra(trace, &value))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, trace->term));
    DT_TRY(e->value, dt_term(trace, value));
    return DT_DECODED;
}

enum dt_decoded dt_decode_exception(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_exception *e = &event->function_exception;
    const ERL_NIF_TERM *class_value;
    ERL_NIF_TERM what;

    if (!dt_extra(trace, &what) || !dt_get_pair(trace, what, &class_value))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, trace->term));
    DT_TRY(e->class, dt_id(trace, class_value[0]));
    return DT_DECODED;
}

enum dt_decoded dt_decode_reason(struct dt_traced *trace, union dt_event *event) {
    struct dt_function_reason *e = &event->function_reason;
    const ERL_NIF_TERM *class_reason;
    ERL_NIF_TERM what;

    if (!dt_extra(trace, &what) || !dt_get_pair(trace, what, &class_reason))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, trace->term));
    DT_TRY(e->class, dt_id(trace, class_reason[0]));
    DT_TRY(e->reason, dt_term(trace, class_reason[1]));
    return DT_DECODED;
}

enum dt_decoded dt_decode_call_begun(struct dt_traced *trace, union dt_event *event) {
    struct dt_location call;

    (void)event;
    if (!dt_get_location(trace, trace->term, &call))
        return DT_UNDECODED;
    dt_call_times_begin(trace->tracee, &call);
    return DT_NO_EVENT;
}

static enum dt_decoded call_ended(struct dt_traced *trace, struct dt_function_duration *e,
                                  const char *class) {
    struct dt_location call;

    if (!dt_get_location(trace, trace->term, &call))
        return DT_UNDECODED;
    if (!dt_call_times_end(trace->tracee, &call, &e->duration))
        return DT_NO_EVENT;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_location_text(trace, &call));
    DT_TRY(e->class, class);
    return DT_DECODED;
}

enum dt_decoded dt_decode_call_returned(struct dt_traced *trace, union dt_event *event) {
    return call_ended(trace, &event->function_duration, dt_literal("return"));
}

enum dt_decoded dt_decode_call_raised(struct dt_traced *trace, union dt_event *event) {
    const ERL_NIF_TERM *class_value;
    ERL_NIF_TERM what;

    if (!dt_extra(trace, &what) || !dt_get_pair(trace, what, &class_value))
        return DT_UNDECODED;
    return call_ended(trace, &event->function_duration, dt_id(trace, class_value[0]));
}

/* -- Messages ------------------------------------------------------------------- */

enum dt_decoded dt_decode_sent(struct dt_traced *trace, union dt_event *event) {
    struct dt_message_send *e = &event->message_send;
    ERL_NIF_TERM to;

    if (!dt_extra(trace, &to))
        return DT_UNDECODED;
    DT_TRY(e->from, dt_id(trace, trace->tracee));
    DT_TRY(e->to, dt_id(trace, to));
    DT_TRY(e->message, dt_term(trace, trace->term));
    return DT_DECODED;
}

enum dt_decoded dt_decode_port_sent(struct dt_traced *trace, union dt_event *event) {
    return dt_is_port_result(trace) ? DT_NO_EVENT : dt_decode_sent(trace, event);
}

enum dt_decoded dt_decode_received(struct dt_traced *trace, union dt_event *event) {
    struct dt_message_receive *e = &event->message_receive;

    DT_TRY(e->to, dt_id(trace, trace->tracee));
    DT_TRY(e->message, dt_term(trace, trace->term));
    return DT_DECODED;
}

/* The result of dyntrace:sender_pattern(): {Node,Pid} for a process of this node, {Port,undefined}
   for a port, {Node,undefined} for others, including the nodes clock_service and system. */
static bool get_sender(const struct dt_traced *trace, ERL_NIF_TERM *from, ERL_NIF_TERM *node) {
    const ERL_NIF_TERM *pair;
    ERL_NIF_TERM result;

    if (!enif_get_map_value(trace->env, trace->opts, atom_match_spec_result, &result) ||
        !dt_get_pair(trace, result, &pair))
        return false;
    *from = pair[1];
    *node = pair[0];
    if (enif_is_atom(trace->env, *node))
        return enif_is_pid(trace->env, *from) || enif_is_identical(*from, atom_undefined);
    *from = pair[0];
    return enif_is_identical(pair[1], atom_undefined) && enif_is_port(trace->env, *from) &&
           dt_get_node(trace->env, *from, node);
}

/* Processes that poll their mailboxes cause as many timeouts as messages. A consumer of
   message_receive gets all timeouts, so it gets their deliveries, too. */
static bool is_left_out(const struct dt_traced *trace, ERL_NIF_TERM node) {
    return node == atom_clock_service && dt_waits_is_poll(trace) &&
           !dt_is_enabled(DT_message_receive);
}

/* Without that match specification, or with the result of another one, the sender is unknown. */
enum dt_decoded dt_decode_delivered(struct dt_traced *trace, union dt_event *event) {
    struct dt_message_delivery *e = &event->message_delivery;
    ERL_NIF_TERM from, node;

    if (!get_sender(trace, &from, &node) || is_left_out(trace, node))
        return DT_NO_EVENT;
    DT_TRY(e->to, dt_id(trace, trace->tracee));
    DT_TRY(e->from, enif_is_atom(trace->env, from) ? "" : dt_id(trace, from));
    DT_TRY(e->node, dt_id(trace, node));
    DT_TRY(e->message, dt_term(trace, trace->term));
    return DT_DECODED;
}

/* {Caller, Request}: the VM does not evaluate match specifications for ports. */
enum dt_decoded dt_decode_port_delivered(struct dt_traced *trace, union dt_event *event) {
    struct dt_message_delivery *e = &event->message_delivery;
    const ERL_NIF_TERM *pair;
    bool has_caller = dt_get_pair(trace, trace->term, &pair) && enif_is_pid(trace->env, pair[0]);

    DT_TRY(e->to, dt_id(trace, trace->tracee));
    DT_TRY(e->from, has_caller ? dt_id(trace, pair[0]) : "");
    e->node = "";
    DT_TRY(e->message, dt_term(trace, trace->term));
    return DT_DECODED;
}

/* -- Garbage collection --------------------------------------------------------- */

/* `wordsize` is the need of the process at the start, and the reclaimed heap at the end. */
#define GC_START_DECODER(probe)                                                                    \
    enum dt_decoded dt_decode_##probe(struct dt_traced *trace, union dt_event *event) {            \
        struct dt_##probe *e = &event->probe;                                                      \
        const ERL_NIF_TERM keys[] = {atom_wordsize, atom_heap_block_size,                          \
                                     atom_old_heap_block_size};                                    \
        uint64_t *const values[] = {&e->need, &e->heap, &e->old_heap};                             \
                                                                                                   \
        DT_TRY(e->pid, dt_id(trace, trace->tracee));                                               \
        return dt_values(trace, keys, values, 3) ? DT_DECODED : DT_UNDECODED;                      \
    }
GC_START_DECODER(gc_minor_start)
GC_START_DECODER(gc_major_start)

/* The heaps refer to binaries of `bin_vheap_size` and `bin_old_vheap_size` words. */
#define GC_END_DECODER(probe)                                                                      \
    enum dt_decoded dt_decode_##probe(struct dt_traced *trace, union dt_event *event) {            \
        struct dt_##probe *e = &event->probe;                                                      \
        uint64_t old_binaries = 0;                                                                 \
        const ERL_NIF_TERM keys[] = {atom_wordsize, atom_heap_block_size,                          \
                                     atom_old_heap_block_size, atom_bin_vheap_size,                \
                                     atom_bin_old_vheap_size};                                     \
        uint64_t *const values[] = {&e->reclaimed, &e->heap, &e->old_heap, &e->binaries,           \
                                    &old_binaries};                                                \
                                                                                                   \
        DT_TRY(e->pid, dt_id(trace, trace->tracee));                                               \
        if (!dt_values(trace, keys, values, 5))                                                    \
            return DT_UNDECODED;                                                                   \
        e->binaries += old_binaries;                                                               \
        return DT_DECODED;                                                                         \
    }
GC_END_DECODER(gc_minor_end)
GC_END_DECODER(gc_major_end)

/* -- Sequential tracing --------------------------------------------------------- */

#define SEQ_MESSAGE_DECODER(name, probe)                                                           \
    enum dt_decoded dt_decode_##name(struct dt_traced *trace, union dt_event *event) {             \
        struct dt_##probe *e = &event->probe;                                                      \
        struct dt_seq_info info;                                                                   \
                                                                                                   \
        if (!dt_get_seq_info(trace, &info))                                                        \
            return DT_UNDECODED;                                                                   \
        DT_TRY(e->label, dt_term(trace, trace->tracee));                                           \
        e->previous = info.previous;                                                               \
        e->current = info.current;                                                                 \
        DT_TRY(e->from, dt_id(trace, info.from));                                                  \
        DT_TRY(e->to, dt_id(trace, info.to));                                                      \
        DT_TRY(e->message, dt_term(trace, info.message));                                          \
        return DT_DECODED;                                                                         \
    }

SEQ_MESSAGE_DECODER(seq_send, seq_trace_send)
SEQ_MESSAGE_DECODER(seq_receive, seq_trace_receive)

enum dt_decoded dt_decode_seq_print(struct dt_traced *trace, union dt_event *event) {
    struct dt_seq_trace_print *e = &event->seq_trace_print;
    struct dt_seq_info info;

    if (!dt_get_seq_info(trace, &info))
        return DT_UNDECODED;
    DT_TRY(e->label, dt_term(trace, trace->tracee));
    e->previous = info.previous;
    e->current = info.current;
    DT_TRY(e->from, dt_id(trace, info.from));
    DT_TRY(e->message, dt_term(trace, info.message));
    return DT_DECODED;
}
