/*
 * The parts of trace events that several decoders share.
 */
#ifndef DT_SOURCES_PARTS_H
#define DT_SOURCES_PARTS_H

#include "sources/decode.h"
#include "text/id.h"

/* Sets the field to the text; without a text, ends the decoder. */
#define DT_TRY(field, text_or_null)                                                                \
    do {                                                                                           \
        if (!((field) = (text_or_null)))                                                           \
            return DT_UNDECODED;                                                                   \
    } while (0)

static inline const char *dt_id(struct dt_traced *trace, ERL_NIF_TERM term) {
    return dt_text_id(trace->text, trace->env, term);
}
const char *dt_term(struct dt_traced *trace, ERL_NIF_TERM term);

/* A constant text of the library. It is read first, because BPF programs cannot fault a page in:
   they would see an empty text if its page has never been read. */
static inline const char *dt_literal(const char *text) {
    const volatile char *at = text;

    while (*at)
        at++;
    return text;
}

/* The value of the key `extra` in the options. */
bool dt_extra(const struct dt_traced *trace, ERL_NIF_TERM *value);

/* A location: {M,F,Args} or {M,F,Arity}. */
struct dt_location {
    ERL_NIF_TERM module, function;
    ERL_NIF_TERM arguments; /* Args, or Arity */
    unsigned long arity;
};

bool dt_get_location(const struct dt_traced *trace, ERL_NIF_TERM term,
                     struct dt_location *location);
/* The same, from its elements. */
bool dt_get_call(const struct dt_traced *trace, ERL_NIF_TERM module, ERL_NIF_TERM function,
                 ERL_NIF_TERM arity_or_args, struct dt_location *location);
const char *dt_location_text(struct dt_traced *trace, const struct dt_location *location);

/* The text of the location `term`. */
const char *dt_mfa(struct dt_traced *trace, ERL_NIF_TERM term);

/* A location; if the VM does not know it, it is 0 or undefined. */
const char *dt_where(struct dt_traced *trace, ERL_NIF_TERM location);

/* The elements of a pair. */
bool dt_get_pair(const struct dt_traced *trace, ERL_NIF_TERM term, const ERL_NIF_TERM **pair);

/* The values of `count` keys, which are atoms, in a list of {Key, Value}, as in events of garbage
   collections. False if one is missing or is not a number. */
bool dt_values(const struct dt_traced *trace, const ERL_NIF_TERM keys[], uint64_t *const values[],
               unsigned count);

/* The node of a pid, port or reference. The runtime allocates memory for it: see ARCHITECTURE.md,
   "Callback invariants". */
bool dt_get_node(ErlNifEnv *env, ERL_NIF_TERM handle, ERL_NIF_TERM *node);

/* {send | 'receive' | print, {Previous,Current}, From, To, Message}: the term of a seq_trace event.
   For print, To is []. */
struct dt_seq_info {
    uint64_t previous, current;
    ERL_NIF_TERM from, to, message;
};

bool dt_get_seq_info(const struct dt_traced *trace, struct dt_seq_info *info);

/* Whether the message of a port is the result of port_control/3 or port_call/3: {Port, {control |
   call, Binary}}. The VM traces it as if the port had sent it, but it is not a message. A driver's
   own message of exactly this shape looks the same. */
bool dt_is_port_result(const struct dt_traced *trace);

#endif
