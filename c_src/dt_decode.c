/*
 * One decoder a shape, then the table that gives each trace tag its decoder. What a
 * tag's term and `extra` are is in the documentation of erlang:trace/3 (the trace
 * messages) and of erl_tracer (what of them goes where); of seq_trace, in its own.
 *
 * Everything here runs inside the traced process: no allocation, no sends, no locks.
 */
#include "dt_decode.h"

#include "dt_atoms.h"

/* Text, or the end of the decoder. */
#define TRY(field, text_or_null)                                                                   \
    do {                                                                                           \
        if (!((field) = (text_or_null)))                                                           \
            return false;                                                                          \
    } while (0)

/* -- Parts of events ------------------------------------------------------------ */

static const char *id(struct dt_trace *trace, ERL_NIF_TERM term) {
    return dt_text_id(trace->text, trace->env, term);
}

static const char *term(struct dt_trace *trace, ERL_NIF_TERM term) {
    return dt_text_term(trace->text, trace->env, term);
}

static bool extra(const struct dt_trace *trace, ERL_NIF_TERM *value) {
    return enif_get_map_value(trace->env, trace->opts, atom_extra, value);
}

/* A location: {M,F,Args} or {M,F,Arity}. */
static const char *mfa(struct dt_trace *trace, ERL_NIF_TERM location) {
    const ERL_NIF_TERM *el;
    int size;
    unsigned args;
    unsigned long arity;

    if (!enif_get_tuple(trace->env, location, &size, &el) || size != 3)
        return NULL;
    if (enif_get_list_length(trace->env, el[2], &args))
        arity = args;
    else if (!enif_get_ulong(trace->env, el[2], &arity))
        return NULL;
    return dt_text_mfa(trace->text, trace->env, el[0], el[1], arity);
}

/* A location that the VM may not know: then it says 0, or undefined. */
static const char *where(struct dt_trace *trace, ERL_NIF_TERM location) {
    int zero;

    if (enif_is_identical(location, atom_undefined) ||
        (enif_get_int(trace->env, location, &zero) && zero == 0))
        return "undefined";
    return enif_is_atom(trace->env, location) ? id(trace, location) : mfa(trace, location);
}

/* The value of a key in a list of {Key, Value}. */
static bool get_value(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM key, uint64_t *value) {
    const ERL_NIF_TERM *el;
    ERL_NIF_TERM head;
    ErlNifUInt64 number;
    int size;

    while (enif_get_list_cell(env, list, &head, &list)) {
        if (!enif_get_tuple(env, head, &size, &el) || size != 2 || !enif_is_identical(el[0], key))
            continue;
        if (!enif_get_uint64(env, el[1], &number))
            return false;
        *value = number;
        return true;
    }
    return false;
}

/* -- Processes, links and scheduling -------------------------------------------- */

static bool decode_spawn(struct dt_trace *trace, union dt_event *event) {
    struct dt_process_spawn *e = &event->process_spawn;
    ERL_NIF_TERM entry;

    if (!extra(trace, &entry))
        return false;
    TRY(e->pid, id(trace, trace->term));
    TRY(e->parent, id(trace, trace->tracee));
    TRY(e->entry, mfa(trace, entry));
    return true;
}

static bool decode_exit(struct dt_trace *trace, union dt_event *event) {
    struct dt_process_exit *e = &event->process_exit;

    TRY(e->pid, id(trace, trace->tracee));
    TRY(e->reason, term(trace, trace->term));
    return true;
}

static bool decode_name(struct dt_trace *trace, union dt_event *event) {
    struct dt_process_register *e = &event->process_register;

    TRY(e->pid, id(trace, trace->tracee));
    TRY(e->name, id(trace, trace->term));
    e->type = trace->route->type;
    return true;
}

/* Both ends of a link may be traced: seen from the other side, the tracee is who it
   was done to. */
#define LINK_DECODER(decoder, probe, doer, other)                                                  \
    static bool decode_##decoder(struct dt_trace *trace, union dt_event *event) {                  \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        TRY(e->from, id(trace, trace->doer));                                                      \
        TRY(e->to, id(trace, trace->other));                                                       \
        e->type = trace->route->type;                                                              \
        return true;                                                                               \
    }

LINK_DECODER(link, process_link, tracee, term)
LINK_DECODER(linked, process_link, term, tracee)
LINK_DECODER(port_link, port_link, tracee, term)
LINK_DECODER(port_linked, port_link, term, tracee)

#define SCHEDULED_DECODER(decoder, probe, who)                                                     \
    static bool decode_##decoder(struct dt_trace *trace, union dt_event *event) {                  \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        TRY(e->who, id(trace, trace->tracee));                                                     \
        TRY(e->entry, where(trace, trace->term));                                                  \
        e->type = trace->route->type;                                                              \
        return true;                                                                               \
    }

SCHEDULED_DECODER(scheduled, process_scheduled, pid)
SCHEDULED_DECODER(port_scheduled, port_scheduled, port)

/* -- Ports ---------------------------------------------------------------------- */

static bool decode_port_open(struct dt_trace *trace, union dt_event *event) {
    struct dt_port_open *e = &event->port_open;
    ERL_NIF_TERM driver;

    if (!extra(trace, &driver))
        return false;
    TRY(e->pid, id(trace, trace->term));
    TRY(e->driver, id(trace, driver));
    TRY(e->port, id(trace, trace->tracee));
    return true;
}

static bool decode_port_exit(struct dt_trace *trace, union dt_event *event) {
    struct dt_port_exit *e = &event->port_exit;

    TRY(e->port, id(trace, trace->tracee));
    TRY(e->reason, term(trace, trace->term));
    return true;
}

/* -- Calls ---------------------------------------------------------------------- */

static bool decode_called(struct dt_trace *trace, union dt_event *event) {
    struct dt_function_call *e = &event->function_call;

    TRY(e->pid, id(trace, trace->tracee));
    TRY(e->entry, mfa(trace, trace->term));
    e->depth = 0;
    return true;
}

static bool decode_returned(struct dt_trace *trace, union dt_event *event) {
    struct dt_function_return *e = &event->function_return;

    TRY(e->pid, id(trace, trace->tracee));
    TRY(e->entry, where(trace, trace->term));
    e->depth = 0;
    return true;
}

static bool decode_exception(struct dt_trace *trace, union dt_event *event) {
    struct dt_function_exception *e = &event->function_exception;
    const ERL_NIF_TERM *class_value;
    ERL_NIF_TERM what;
    int size;

    if (!extra(trace, &what) || !enif_get_tuple(trace->env, what, &size, &class_value) || size != 2)
        return false;
    TRY(e->pid, id(trace, trace->tracee));
    TRY(e->entry, mfa(trace, trace->term));
    TRY(e->class, id(trace, class_value[0]));
    return true;
}

/* -- Messages ------------------------------------------------------------------- */

static bool decode_sent(struct dt_trace *trace, union dt_event *event) {
    struct dt_message_send *e = &event->message_send;
    ERL_NIF_TERM to;

    if (!extra(trace, &to))
        return false;
    TRY(e->from, id(trace, trace->tracee));
    TRY(e->to, id(trace, to));
    TRY(e->message, term(trace, trace->term));
    return true;
}

static bool decode_received(struct dt_trace *trace, union dt_event *event) {
    struct dt_message_receive *e = &event->message_receive;

    TRY(e->to, id(trace, trace->tracee));
    TRY(e->message, term(trace, trace->term));
    return true;
}

/* -- Garbage collection --------------------------------------------------------- */

/* `wordsize` is what the collection is to free at its start, and has freed at its end. */
#define GC_DECODER(probe, amount)                                                                  \
    static bool decode_##probe(struct dt_trace *trace, union dt_event *event) {                    \
        struct dt_##probe *e = &event->probe;                                                      \
                                                                                                   \
        TRY(e->pid, id(trace, trace->tracee));                                                     \
        return get_value(trace->env, trace->term, atom_wordsize, &e->amount) &&                    \
               get_value(trace->env, trace->term, atom_heap_block_size, &e->heap) &&               \
               get_value(trace->env, trace->term, atom_old_heap_block_size, &e->old_heap);         \
    }

GC_DECODER(gc_minor_start, need)
GC_DECODER(gc_minor_end, reclaimed)
GC_DECODER(gc_major_start, need)
GC_DECODER(gc_major_end, reclaimed)

/* -- Sequential tracing --------------------------------------------------------- */

/* {send | 'receive' | print, {Previous,Current}, From, To, Message}; To is [] of print. */
struct seq_info {
    const char *label;
    uint64_t previous, current;
    const ERL_NIF_TERM *el;
};

static bool get_seq_info(struct dt_trace *trace, struct seq_info *info) {
    const ERL_NIF_TERM *serial;
    ErlNifUInt64 previous, current;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &info->el) || size != 5 ||
        !enif_get_tuple(trace->env, info->el[1], &size, &serial) || size != 2 ||
        !enif_get_uint64(trace->env, serial[0], &previous) ||
        !enif_get_uint64(trace->env, serial[1], &current))
        return false;
    info->previous = previous;
    info->current = current;
    return (info->label = term(trace, trace->tracee)) != NULL;
}

#define SEQ_MESSAGE_DECODER(name, probe)                                                           \
    static bool decode_##name(struct dt_trace *trace, union dt_event *event) {                     \
        struct dt_##probe *e = &event->probe;                                                      \
        struct seq_info info;                                                                      \
                                                                                                   \
        if (!get_seq_info(trace, &info))                                                           \
            return false;                                                                          \
        e->label = info.label;                                                                     \
        e->previous = info.previous;                                                               \
        e->current = info.current;                                                                 \
        TRY(e->from, id(trace, info.el[2]));                                                       \
        TRY(e->to, id(trace, info.el[3]));                                                         \
        TRY(e->message, term(trace, info.el[4]));                                                  \
        return true;                                                                               \
    }

SEQ_MESSAGE_DECODER(seq_send, seq_trace_send)
SEQ_MESSAGE_DECODER(seq_receive, seq_trace_receive)

static bool decode_seq_print(struct dt_trace *trace, union dt_event *event) {
    struct dt_seq_trace_print *e = &event->seq_trace_print;
    struct seq_info info;

    if (!get_seq_info(trace, &info))
        return false;
    e->label = info.label;
    e->previous = info.previous;
    e->current = info.current;
    TRY(e->from, id(trace, info.el[2]));
    TRY(e->message, term(trace, info.el[4]));
    return true;
}

/* -- The routes ----------------------------------------------------------------- */

#define GROUP(group) static const struct dt_route group##_routes[] = {
#define ROUTE(tag, probe, decoder, type, flags)                                                    \
    {&atom_##tag, DT_##probe, decode_##decoder, type, flags},
#define ASK(tag, probe) {&atom_##tag, DT_##probe, NULL, NULL, NULL},
#define SILENT(tag) {&atom_##tag, DT_PROBES, NULL, NULL, NULL},
#define END                                                                                        \
    { NULL, DT_PROBES, NULL, NULL, NULL }                                                          \
    }                                                                                              \
    ;
#include "dt_routes.def"

#define GROUP(group) group##_routes,
const struct dt_route *const dt_routes[DT_GROUPS] = {
#include "dt_routes.def"
};

#define GROUP(group) #group,
const char *const dt_group_names[DT_GROUPS] = {
#include "dt_routes.def"
};
