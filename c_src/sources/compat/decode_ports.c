/*
 * The decoders of ports and drivers. A request is an event 'receive' of {Caller, Request}. The
 * messages that a port sends while the scheduler runs it without a caller show what its driver did.
 */
#include "catalogue/atoms.h"
#include "catalogue/unused.h"
#include "sources/compat/int32.h"
#include "sources/compat/ports.h"
#include "sources/parts.h"
#include "text/binary.h"
#include "text/string.h"

/* -- Parts ---------------------------------------------------------------------------- */

/* What an event contains for its probe. Its first three texts are the same for all probes. */
struct parts {
    const char *process, *port, *name;
    const char *type;       /* of port__command */
    ERL_NIF_TERM new_owner; /* of port__connect */
    unsigned command;
    uint64_t bytes;
};

static const char *name_of(struct dt_traced *trace, const struct dt_port *port) {
    return port->name ? dt_text_name(trace->text, trace->env, port->name) : "";
}

static enum dt_decoded get_port(struct dt_traced *trace, struct dt_port *port,
                                struct parts *parts) {
    dt_ports_get(trace, port);
    DT_TRY(parts->port, dt_id(trace, trace->tracee));
    DT_TRY(parts->name, name_of(trace, port));
    return DT_DECODED;
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

enum { PIECES = 1000 }; /* counted at most */

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

/* Sets the members of the request's probe. Returns false for a request for which it does not fire.
 */
typedef bool getter(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts);

/* {Caller, Request} */
static enum dt_decoded get_request(struct dt_traced *trace, getter *get, struct parts *parts) {
    const ERL_NIF_TERM *caller_request;
    struct dt_port port;

    if (!dt_get_pair(trace, trace->term, &caller_request))
        return DT_UNDECODED;
    if (!get(trace, caller_request[1], parts))
        return DT_NO_EVENT;
    DT_TRY(parts->process, dt_id(trace, caller_request[0]));
    return get_port(trace, &port, parts);
}

/* {command, Data}, close or {connect, Process} */
static bool get_type(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts) {
    ERL_NIF_TERM value;

    parts->type = enif_is_identical(request, atom_close)            ? dt_literal("close")
                  : get_named(trace, request, atom_command, &value) ? dt_literal("command")
                  : get_named(trace, request, atom_connect, &value) ? dt_literal("connect")
                                                                    : NULL;
    return parts->type != NULL;
}

static bool get_new_owner(const struct dt_traced *trace, ERL_NIF_TERM request,
                          struct parts *parts) {
    return get_named(trace, request, atom_connect, &parts->new_owner);
}

static bool get_output(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts) {
    ERL_NIF_TERM data;

    return get_named(trace, request, atom_command, &data) &&
           get_binary_size(trace->env, data, &parts->bytes);
}

static bool get_outputv(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts) {
    ERL_NIF_TERM data;

    return get_named(trace, request, atom_command, &data) &&
           get_vector_size(trace->env, data, &parts->bytes);
}

/* {control | call, {Command, Data}} */
static bool get_operation(const struct dt_traced *trace, ERL_NIF_TERM request, ERL_NIF_TERM name,
                          struct parts *parts) {
    ERL_NIF_TERM value;
    const ERL_NIF_TERM *command_data;

    return get_named(trace, request, name, &value) && dt_get_pair(trace, value, &command_data) &&
           enif_get_uint(trace->env, command_data[0], &parts->command) &&
           get_binary_size(trace->env, command_data[1], &parts->bytes);
}

static bool get_control(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts) {
    return get_operation(trace, request, atom_control, parts);
}

static bool get_call(const struct dt_traced *trace, ERL_NIF_TERM request, struct parts *parts) {
    return get_operation(trace, request, atom_call, parts);
}

enum dt_decoded dt_decode_erlang_port_command(struct dt_traced *trace, union dt_event *event) {
    struct parts p = {.port = NULL};
    enum dt_decoded decoded = get_request(trace, get_type, &p);

    event->port__command = (struct dt_port__command){p.process, p.port, p.name, p.type};
    return decoded;
}

enum dt_decoded dt_decode_erlang_port_connect(struct dt_traced *trace, union dt_event *event) {
    struct dt_port__connect *e = &event->port__connect;
    struct parts p = {.port = NULL};
    enum dt_decoded decoded = get_request(trace, get_new_owner, &p);

    if (decoded != DT_DECODED)
        return decoded;
    *e = (struct dt_port__connect){p.process, p.port, p.name, NULL};
    DT_TRY(e->new_process, dt_id(trace, p.new_owner));
    return DT_DECODED;
}

enum dt_decoded dt_decode_erlang_port_control(struct dt_traced *trace, union dt_event *event) {
    struct parts p = {.port = NULL};
    enum dt_decoded decoded = get_request(trace, get_control, &p);

    event->port__control = (struct dt_port__control){p.process, p.port, p.name, (int32_t)p.command};
    return decoded;
}

/* The provider erlang has sizes of 32 bits, org_erlang_otp of 64. */
static uint64_t in_full(uint64_t bytes) {
    return bytes;
}

#define OUTPUT_DECODER(decoder, probe, get, width)                                                 \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct parts p = {.port = NULL};                                                           \
        enum dt_decoded decoded = get_request(trace, get, &p);                                     \
                                                                                                   \
        event->probe = (struct dt_##probe){p.process, p.port, p.name, width(p.bytes)};             \
        return decoded;                                                                            \
    }

OUTPUT_DECODER(erlang_driver_output, driver__output, get_output, dt_int32)
OUTPUT_DECODER(erlang_driver_outputv, driver__outputv, get_outputv, dt_int32)
OUTPUT_DECODER(driver_output, driver_output, get_output, in_full)
OUTPUT_DECODER(driver_outputv, driver_outputv, get_outputv, in_full)

#define OPERATION_DECODER(decoder, probe, get, number, width)                                      \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct parts p = {.port = NULL};                                                           \
        enum dt_decoded decoded = get_request(trace, get, &p);                                     \
                                                                                                   \
        event->probe =                                                                             \
            (struct dt_##probe){p.process, p.port, p.name, (number)p.command, width(p.bytes)};     \
        return decoded;                                                                            \
    }

OPERATION_DECODER(erlang_driver_control, driver__control, get_control, int32_t, dt_int32)
OPERATION_DECODER(erlang_driver_call, driver__call, get_call, int32_t, dt_int32)
OPERATION_DECODER(driver_control, driver_control, get_control, uint32_t, in_full)
OPERATION_DECODER(driver_call, driver_call, get_call, uint32_t, in_full)

/* -- Messages --------------------------------------------------------------------- */

enum dt_decoded dt_decode_erlang_port_send(struct dt_traced *trace, union dt_event *event) {
    return dt_is_port_result(trace) ? DT_NO_EVENT : dt_decode_erlang_send(trace, event);
}

/* -- Without a caller --------------------------------------------------------------------- */

static bool is_any(DT_UNUSED const struct dt_traced *trace) {
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
static bool shows_output(const struct dt_traced *trace) {
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
static bool shows_neither(const struct dt_traced *trace) {
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
    return shows_output(trace) && dt_ports_take_ready(trace);
}

static bool is_input(const struct dt_traced *trace) {
    return !shows_output(trace) && !shows_neither(trace) && dt_ports_take_ready(trace);
}

static enum dt_decoded get_owner(struct dt_traced *trace, struct parts *parts) {
    struct dt_port port;
    enum dt_decoded decoded = get_port(trace, &port, parts);

    if (decoded == DT_DECODED)
        DT_TRY(parts->process, port.owner ? dt_id(trace, port.owner) : "");
    return decoded;
}

enum dt_decoded dt_decode_erlang_port_exit(struct dt_traced *trace, union dt_event *event) {
    struct dt_port__exit *e = &event->port__exit;
    struct parts p = {.port = NULL};

    if (get_owner(trace, &p) != DT_DECODED)
        return DT_UNDECODED;
    *e = (struct dt_port__exit){p.process, p.port, p.name, NULL};
    DT_TRY(e->reason, dt_term(trace, trace->term));
    return DT_DECODED;
}

#define OWNER_DECODER(decoder, probe, is, process_field, name_field)                               \
    enum dt_decoded dt_decode_##decoder(struct dt_traced *trace, union dt_event *event) {          \
        struct parts p = {.port = NULL};                                                           \
        enum dt_decoded decoded = is(trace) ? get_owner(trace, &p) : DT_NO_EVENT;                  \
                                                                                                   \
        event->probe =                                                                             \
            (struct dt_##probe){.process_field = p.process, .port = p.port, .name_field = p.name}; \
        return decoded;                                                                            \
    }

OWNER_DECODER(erlang_driver_stop, driver__stop, is_any, process, name)
OWNER_DECODER(erlang_driver_flush, driver__flush, is_flush, process, port_name)
OWNER_DECODER(erlang_driver_timeout, driver__timeout, is_timeout, process, port_name)
OWNER_DECODER(erlang_driver_ready_input, driver__ready_input, is_input, process, port_name)
OWNER_DECODER(erlang_driver_ready_output, driver__ready_output, is_output, process, port_name)
OWNER_DECODER(driver_stop, driver_stop, is_any, pid, driver)
OWNER_DECODER(driver_flush, driver_flush, is_flush, pid, driver)
OWNER_DECODER(driver_timeout, driver_timeout, is_timeout, pid, driver)
OWNER_DECODER(driver_ready_input, driver_ready_input, is_input, pid, driver)
OWNER_DECODER(driver_ready_output, driver_ready_output, is_output, pid, driver)
