#include "sources/parts.h"

#include "catalogue/atoms.h"
#include "text/heap.h"
#include "text/id.h"
#include "text/term.h"

const char *dt_term(struct dt_traced *trace, ERL_NIF_TERM term) {
    return dt_text_term(trace->text, trace->env, term);
}

bool dt_extra(const struct dt_traced *trace, ERL_NIF_TERM *value) {
    return enif_get_map_value(trace->env, trace->opts, atom_extra, value);
}

/* The length of a proper list, up to DT_ARITY_MORE. */
static bool get_arity(ErlNifEnv *env, ERL_NIF_TERM args, unsigned long *arity) {
    ERL_NIF_TERM head;

    *arity = 0;
    while (*arity < DT_ARITY_MORE && dt_list_cell(env, args, &head, &args))
        ++*arity;
    return *arity == DT_ARITY_MORE || args == dt_empty_list;
}

bool dt_get_location(const struct dt_traced *trace, ERL_NIF_TERM term,
                     struct dt_location *location) {
    const ERL_NIF_TERM *el = dt_tuple(trace->env, term, 3);

    return el && dt_get_call(trace, el[0], el[1], el[2], location);
}

bool dt_get_call(const struct dt_traced *trace, ERL_NIF_TERM module, ERL_NIF_TERM function,
                 ERL_NIF_TERM arity_or_args, struct dt_location *location) {
    long arity;

    location->module = module;
    location->function = function;
    location->arguments = arity_or_args;
    if (dt_small(arity_or_args, &arity)) {
        location->arity = (unsigned long)arity;
        return arity >= 0;
    }
    return get_arity(trace->env, arity_or_args, &location->arity) ||
           enif_get_ulong(trace->env, arity_or_args, &location->arity);
}

const char *dt_location_text(struct dt_traced *trace, const struct dt_location *location) {
    return dt_text_mfa(trace->text, trace->env, location->module, location->function,
                       location->arity);
}

const char *dt_mfa(struct dt_traced *trace, ERL_NIF_TERM term) {
    struct dt_location location;

    return dt_get_location(trace, term, &location) ? dt_location_text(trace, &location) : NULL;
}

const char *dt_where(struct dt_traced *trace, ERL_NIF_TERM location) {
    int zero;

    if (enif_is_identical(location, atom_undefined) ||
        (enif_get_int(trace->env, location, &zero) && zero == 0))
        return dt_literal("undefined");
    return enif_is_atom(trace->env, location) ? dt_id(trace, location) : dt_mfa(trace, location);
}

bool dt_get_pair(const struct dt_traced *trace, ERL_NIF_TERM term, const ERL_NIF_TERM **pair) {
    *pair = dt_tuple(trace->env, term, 2);
    return *pair != NULL;
}

/* Returns the index of the key, or `count`. */
static inline unsigned find_key(ERL_NIF_TERM key, const ERL_NIF_TERM keys[], unsigned count) {
    unsigned k = 0;

    while (k < count && keys[k] != key)
        k++;
    return k;
}

bool dt_values(const struct dt_traced *trace, const ERL_NIF_TERM keys[], uint64_t *const values[],
               unsigned count) {
    enum { PAIRS = 64 }; /* more than the runtime has */
    ERL_NIF_TERM list = trace->term, head;
    const ERL_NIF_TERM *el;
    ErlNifUInt64 number;
    unsigned missing = (1U << count) - 1; /* bits */

    for (int i = 0; i < PAIRS && missing && dt_list_cell(trace->env, list, &head, &list); i++) {
        unsigned k;

        if (!(el = dt_tuple(trace->env, head, 2)))
            continue;
        k = find_key(el[0], keys, count);
        if (!(missing & 1U << k))
            continue;
        if (!enif_get_uint64(trace->env, el[1], &number))
            return false;
        *values[k] = number;
        missing &= ~(1U << k);
    }
    return !missing;
}

bool dt_get_seq_info(const struct dt_traced *trace, struct dt_seq_info *info) {
    const ERL_NIF_TERM *el, *serial;
    ErlNifUInt64 previous, current;
    int size;

    if (!enif_get_tuple(trace->env, trace->term, &size, &el) || size != 5 ||
        !enif_get_tuple(trace->env, el[1], &size, &serial) || size != 2 ||
        !enif_get_uint64(trace->env, serial[0], &previous) ||
        !enif_get_uint64(trace->env, serial[1], &current))
        return false;
    *info = (struct dt_seq_info){previous, current, el[2], el[3], el[4]};
    return true;
}

/* erl_nif has no function for it, but the external term format contains the node's name: it is an
   atom after one byte for the type and, in a reference, two bytes for its length. */
bool dt_get_node(ErlNifEnv *env, ERL_NIF_TERM handle, ERL_NIF_TERM *node) {
    enum { VERSION = 131, NEWER_REFERENCE = 90 };
    ErlNifBinary external;
    size_t before;
    bool got = false;

    if (!(enif_is_pid(env, handle) || enif_is_port(env, handle) || enif_is_ref(env, handle)) ||
        !enif_term_to_binary(env, handle, &external))
        return false;
    if (external.size > 4) {
        before = external.data[1] == NEWER_REFERENCE ? 3 : 1;
        external.data[before] = VERSION;
        got = enif_binary_to_term(env, external.data + before, external.size - before, node, 0) > 0;
    }
    enif_release_binary(&external);
    return got;
}

bool dt_is_port_result(const struct dt_traced *trace) {
    const ERL_NIF_TERM *message, *result;

    return dt_get_pair(trace, trace->term, &message) &&
           enif_is_identical(message[0], trace->tracee) &&
           dt_get_pair(trace, message[1], &result) &&
           (enif_is_identical(result[0], atom_control) ||
            enif_is_identical(result[0], atom_call)) &&
           enif_is_binary(trace->env, result[1]);
}
