/*
 * The decoders of ports and drivers. A request is an event 'receive' of {Caller, Request}. The
 * messages that a port sends while the scheduler runs it without a caller show what its driver did.
 */
#include "sources/decode_erlang.h"

#include "catalogue/atoms.h"
#include "sources/parts.h"
#include "sources/ports.h"
#include "text/binary.h"
#include "text/string.h"

/* -- Parts ---------------------------------------------------------------------------- */

/* The leading texts of all of these probes. */
struct who {
    const char *process, *port, *name;
};

static const char *name_of(struct dt_traced *trace, const struct dt_port *port) {
    return port->name ? dt_text_name(trace->text, trace->env, port->name) : "";
}

static enum dt_decoded get_port(struct dt_traced *trace, struct dt_port *port, struct who *who) {
    dt_ports_get(trace, port);
    DT_TRY(who->port, dt_id(trace, trace->tracee));
    DT_TRY(who->name, name_of(trace, port));
    return DT_DECODED;
}

static enum dt_decoded get_caller(struct dt_traced *trace, ERL_NIF_TERM caller, struct who *who) {
    struct dt_port port;

    DT_TRY(who->process, dt_id(trace, caller));
    return get_port(trace, &port, who);
}

static enum dt_decoded get_owner(struct dt_traced *trace, struct who *who) {
    struct dt_port port;
    enum dt_decoded decoded = get_port(trace, &port, who);

    if (decoded == DT_DECODED)
        DT_TRY(who->process, port.owner ? dt_id(trace, port.owner) : "");
    return decoded;
}

/* {Name, Value} */
static bool get_named(const struct dt_traced *trace, ERL_NIF_TERM request, ERL_NIF_TERM name,
                      ERL_NIF_TERM *value) {
    const ERL_NIF_TERM *pair;

    if (!dt_get_pair(trace, request, &pair) || !enif_is_identical(pair[0], name))
        return false;
    *value = pair[1];
    return true;
}

/* -- Data --------------------------------------------------------------------------------- */

/* A driver with `outputv` gets a list of binaries, one with `output` a binary. */
static bool get_binary_size(ErlNifEnv *env, ERL_NIF_TERM data, uint64_t *bytes) {
    ErlNifBinary binary;

    if (!enif_is_binary(env, data) || !enif_inspect_binary(env, data, &binary))
        return false;
    *bytes = binary.size;
    return true;
}

enum { PIECES = 1000 }; /* the maximum number that is counted */

static bool get_vector_size(ErlNifEnv *env, ERL_NIF_TERM data, uint64_t *bytes) {
    ERL_NIF_TERM head;
    ErlNifBinary binary;

    if (!enif_is_list(env, data))
        return false;
    *bytes = 0;
    for (int i = 0; i < PIECES && enif_get_list_cell(env, data, &head, &data); i++) {
        if (!enif_inspect_binary(env, head, &binary))
            return false;
        *bytes += binary.size;
        if (dt_binary_is_large_copy(env, head, &binary))
            break;
    }
    return true;
}

/* -- Opening --------------------------------------------------------------------------------- */

/* {open, Process, Name} */
#define OPEN_DECODER(decoder, probe, process_field, name_field)                                    \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct dt_##probe *e = &event->probe;                                                      \
        ERL_NIF_TERM name;                                                                         \
                                                                                                   \
        if (!dt_extra(trace, &name))                                                               \
            return DT_UNDECODED;                                                                   \
        DT_TRY(e->process_field, dt_id(trace, trace->term));                                       \
        DT_TRY(e->name_field, dt_text_name(trace->text, trace->env, name));                        \
        DT_TRY(e->port, dt_id(trace, trace->tracee));                                              \
        return DT_DECODED;                                                                         \
    }

OPEN_DECODER(erlang_port_open, port__open, process, port_name)
OPEN_DECODER(erlang_driver_start, driver__start, process, name)
OPEN_DECODER(driver_start, driver_start, pid, driver)

/* -- Requests -------------------------------------------------------------------------------- */

/*
 * {Caller, Request}. `get` returns false for a request for which the probe does not fire; `set`
 * sets the fields that only this probe has, from the `part` that `get` returned.
 */
#define REQUEST_DECODER(decoder, probe, process_field, name_field, type, get, set)                 \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct dt_##probe *e = &event->probe;                                                      \
        const ERL_NIF_TERM *caller_request;                                                        \
        struct who who;                                                                            \
        type part;                                                                                 \
                                                                                                   \
        if (!dt_get_pair(trace, trace->term, &caller_request))                                     \
            return DT_UNDECODED;                                                                   \
        if (!get(trace, caller_request[1], &part))                                                 \
            return DT_NO_EVENT;                                                                    \
        if (get_caller(trace, caller_request[0], &who) != DT_DECODED)                              \
            return DT_UNDECODED;                                                                   \
        e->process_field = who.process;                                                            \
        e->port = who.port;                                                                        \
        e->name_field = who.name;                                                                  \
        set;                                                                                       \
        return DT_DECODED;                                                                         \
    }

/* {command, Data}, close or {connect, Process} */
static bool get_type(const struct dt_traced *trace, ERL_NIF_TERM request, const char **type) {
    ERL_NIF_TERM value;

    *type = enif_is_identical(request, atom_close)            ? dt_literal("close")
            : get_named(trace, request, atom_command, &value) ? dt_literal("command")
            : get_named(trace, request, atom_connect, &value) ? dt_literal("connect")
                                                              : NULL;
    return *type != NULL;
}

static bool get_new_owner(const struct dt_traced *trace, ERL_NIF_TERM request,
                          ERL_NIF_TERM *owner) {
    return get_named(trace, request, atom_connect, owner);
}

REQUEST_DECODER(erlang_port_command, port__command, process, port_name, const char *, get_type,
                e->command_type = part)
REQUEST_DECODER(erlang_port_connect, port__connect, process, port_name, ERL_NIF_TERM, get_new_owner,
                DT_TRY(e->new_process, dt_id(trace, part)))

static bool get_output(const struct dt_traced *trace, ERL_NIF_TERM request, uint64_t *bytes) {
    ERL_NIF_TERM data;

    return get_named(trace, request, atom_command, &data) &&
           get_binary_size(trace->env, data, bytes);
}

static bool get_outputv(const struct dt_traced *trace, ERL_NIF_TERM request, uint64_t *bytes) {
    ERL_NIF_TERM data;

    return get_named(trace, request, atom_command, &data) &&
           get_vector_size(trace->env, data, bytes);
}

#define BYTES_32 e->bytes = dt_int32(part)
#define BYTES_64 e->bytes = part

REQUEST_DECODER(erlang_driver_output, driver__output, process, port_name, uint64_t, get_output,
                BYTES_32)
REQUEST_DECODER(erlang_driver_outputv, driver__outputv, process, port_name, uint64_t, get_outputv,
                BYTES_32)
REQUEST_DECODER(driver_output, driver_output, pid, driver, uint64_t, get_output, BYTES_64)
REQUEST_DECODER(driver_outputv, driver_outputv, pid, driver, uint64_t, get_outputv, BYTES_64)

struct operation {
    unsigned command;
    uint64_t bytes;
};

/* {control | call, {Command, Data}} */
static bool get_operation(const struct dt_traced *trace, ERL_NIF_TERM request, ERL_NIF_TERM name,
                          struct operation *operation) {
    ERL_NIF_TERM value;
    const ERL_NIF_TERM *command_data;

    return get_named(trace, request, name, &value) && dt_get_pair(trace, value, &command_data) &&
           enif_get_uint(trace->env, command_data[0], &operation->command) &&
           get_binary_size(trace->env, command_data[1], &operation->bytes);
}

static bool get_control(const struct dt_traced *trace, ERL_NIF_TERM request,
                        struct operation *operation) {
    return get_operation(trace, request, atom_control, operation);
}

static bool get_call(const struct dt_traced *trace, ERL_NIF_TERM request,
                     struct operation *operation) {
    return get_operation(trace, request, atom_call, operation);
}

#define NUMBERS_32 e->command = (int32_t)part.command, e->bytes = dt_int32(part.bytes)
#define NUMBERS_64 e->command = part.command, e->bytes = part.bytes

REQUEST_DECODER(erlang_port_control, port__control, process, port_name, struct operation,
                get_control, e->command_no = (int32_t)part.command)
REQUEST_DECODER(erlang_driver_control, driver__control, process, port_name, struct operation,
                get_control, NUMBERS_32)
REQUEST_DECODER(erlang_driver_call, driver__call, process, port_name, struct operation, get_call,
                NUMBERS_32)
REQUEST_DECODER(driver_control, driver_control, pid, driver, struct operation, get_control,
                NUMBERS_64)
REQUEST_DECODER(driver_call, driver_call, pid, driver, struct operation, get_call, NUMBERS_64)

/* -- Messages --------------------------------------------------------------------- */

/* The VM traces the result of port_control/3 or port_call/3 as if the port had sent it: {Port,
   {control | call, Binary}}. It is not a message. A driver's own message of exactly this shape
   looks the same. */
static bool is_return(const struct dt_traced *trace) {
    const ERL_NIF_TERM *pair;
    ERL_NIF_TERM value;

    return dt_get_pair(trace, trace->term, &pair) && enif_is_identical(pair[0], trace->tracee) &&
           (get_named(trace, pair[1], atom_control, &value) ||
            get_named(trace, pair[1], atom_call, &value)) &&
           enif_is_binary(trace->env, value);
}

enum dt_decoded dt_decode_port_sent(struct dt_traced *trace, union dt_event *event) {
    return is_return(trace) ? DT_NO_EVENT : dt_decode_sent(trace, event);
}

enum dt_decoded dt_decode_erlang_port_send(struct dt_traced *trace, union dt_event *event) {
    return is_return(trace) ? DT_NO_EVENT : dt_decode_erlang_send(trace, event);
}

/* -- Drivers, without a caller ------------------------------------------------------------------
 */

static bool is_any(const struct dt_traced *trace) {
    (void)trace;
    return true;
}

/* {in, flush} */
static bool is_flush(const struct dt_traced *trace) {
    return enif_is_identical(trace->term, atom_flush);
}

/* {'receive', timeout} */
static bool is_timeout(const struct dt_traced *trace) {
    return enif_is_identical(trace->term, atom_timeout);
}

/* {inet_reply, Port, Result}: all data is written. {inet_async, Port, Ref, ok}: the connection is
   made. */
static bool says_output(const struct dt_traced *trace) {
    const ERL_NIF_TERM *el;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &el) || size < 3)
        return false;
    return enif_is_identical(el[0], atom_inet_reply) ||
           (size == 4 && enif_is_identical(el[0], atom_inet_async) &&
            enif_is_identical(el[3], atom_ok));
}

/* {Port, {exit_status, Status}} and the replies to requests, which a program's port may send late.
 */
static bool says_neither(const struct dt_traced *trace) {
    const ERL_NIF_TERM *el, *what;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &el) || size != 2 ||
        !enif_is_identical(el[0], trace->tracee))
        return false;
    return enif_is_atom(trace->env, el[1])
               ? !enif_is_identical(el[1], atom_eof)
               : !enif_get_tuple(trace->env, el[1], &size, &what) || size != 2 ||
                     !enif_is_identical(what[0], atom_data);
}

static bool is_output(const struct dt_traced *trace) {
    return says_output(trace) && dt_ports_take_ready(trace);
}

static bool is_input(const struct dt_traced *trace) {
    return !says_output(trace) && !says_neither(trace) && dt_ports_take_ready(trace);
}

/* `set` as above, or empty. */
#define OWNER_DECODER(decoder, probe, is, process_field, name_field, set)                          \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct dt_##probe *e = &event->probe;                                                      \
        struct who who;                                                                            \
                                                                                                   \
        if (!is(trace))                                                                            \
            return DT_NO_EVENT;                                                                    \
        if (get_owner(trace, &who) != DT_DECODED)                                                  \
            return DT_UNDECODED;                                                                   \
        e->process_field = who.process;                                                            \
        e->port = who.port;                                                                        \
        e->name_field = who.name;                                                                  \
        set;                                                                                       \
        return DT_DECODED;                                                                         \
    }

OWNER_DECODER(erlang_port_exit, port__exit, is_any, process, port_name,
              DT_TRY(e->reason, dt_term(trace, trace->term)))
OWNER_DECODER(erlang_driver_stop, driver__stop, is_any, process, name, )
OWNER_DECODER(erlang_driver_flush, driver__flush, is_flush, process, port_name, )
OWNER_DECODER(erlang_driver_timeout, driver__timeout, is_timeout, process, port_name, )
OWNER_DECODER(erlang_driver_ready_input, driver__ready_input, is_input, process, port_name, )
OWNER_DECODER(erlang_driver_ready_output, driver__ready_output, is_output, process, port_name, )
OWNER_DECODER(driver_stop, driver_stop, is_any, pid, driver, )
OWNER_DECODER(driver_flush, driver_flush, is_flush, pid, driver, )
OWNER_DECODER(driver_timeout, driver_timeout, is_timeout, pid, driver, )
OWNER_DECODER(driver_ready_input, driver_ready_input, is_input, pid, driver, )
OWNER_DECODER(driver_ready_output, driver_ready_output, is_output, pid, driver, )
