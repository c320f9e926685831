/* The decoders of the calls of prim_file, through which all file I/O of Erlang goes. */
#include "catalogue/atoms.h"
#include "sources/parts.h"

/* The first argument, if it is a name: a binary or a list of characters. For other functions it is
   a handle or a number. */
static const char *name_of(struct dt_traced *trace, const struct dt_location *call) {
    ERL_NIF_TERM first, rest;

    if (!enif_get_list_cell(trace->env, call->arguments, &first, &rest) ||
        !(enif_is_binary(trace->env, first) || enif_is_list(trace->env, first)))
        return "";
    return dt_term(trace, first);
}

enum dt_decoded dt_decode_file_called(struct dt_traced *trace, union dt_event *event) {
    struct dt_file_call *e = &event->file_call;
    struct dt_location call;

    if (!dt_get_location(trace, trace->term, &call))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_location_text(trace, &call));
    DT_TRY(e->file, name_of(trace, &call));
    return DT_DECODED;
}

/* ok | {ok, …} | eof | {error, Reason} and, from a few functions, other terms */
static const char *result_of(struct dt_traced *trace, ERL_NIF_TERM value) {
    const ERL_NIF_TERM *pair;

    if (enif_is_atom(trace->env, value))
        return dt_id(trace, value);
    if (!dt_get_pair(trace, value, &pair) || !enif_is_identical(pair[0], atom_error))
        return dt_literal("ok");
    return enif_is_atom(trace->env, pair[1]) ? dt_id(trace, pair[1]) : dt_literal("error");
}

static enum dt_decoded returned(struct dt_traced *trace, struct dt_file_return *e,
                                const char *result) {
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->entry, dt_mfa(trace, trace->term));
    DT_TRY(e->result, result);
    return DT_DECODED;
}

enum dt_decoded dt_decode_file_returned(struct dt_traced *trace, union dt_event *event) {
    ERL_NIF_TERM value;

    return dt_extra(trace, &value) ? returned(trace, &event->file_return, result_of(trace, value))
                                   : DT_UNDECODED;
}

/* {Class, Reason} */
enum dt_decoded dt_decode_file_raised(struct dt_traced *trace, union dt_event *event) {
    const ERL_NIF_TERM *class_reason;
    ERL_NIF_TERM what;

    return dt_extra(trace, &what) && dt_get_pair(trace, what, &class_reason)
               ? returned(trace, &event->file_return, dt_id(trace, class_reason[0]))
               : DT_UNDECODED;
}
