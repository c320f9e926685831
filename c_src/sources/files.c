#include "sources/files.h"

#include <stdatomic.h>

#include "catalogue/atoms.h"
#include "sources/gate.h"
#include "sources/parts.h"
#include "text/heap.h"

/* -- Functions that are traced only for the file probes -------------------------------------- */

enum { MOST = 128, ARITY_BITS = 8, FREE = 0 };

/* Elements are an atom and an arity; free ones are at the end. A read during a write may assign one
   event to the wrong consumer. */
static _Atomic uint64_t alone[MOST];

static uint64_t key(ERL_NIF_TERM function, unsigned long arity) {
    return (uint64_t)function << ARITY_BITS | (arity & ((1U << ARITY_BITS) - 1));
}

static bool is_alone(const struct dt_location *f) {
    const uint64_t wanted = key(f->function, f->arity);

    for (int i = 0; i < MOST; i++) {
        uint64_t at = atomic_load_explicit(&alone[i], memory_order_relaxed);

        if (at == wanted || at == FREE)
            return at == wanted;
    }
    return false;
}

static bool get_function(ErlNifEnv *env, ERL_NIF_TERM term, uint64_t *function) {
    const ERL_NIF_TERM *pair = dt_tuple(env, term, 2);
    unsigned long arity;

    if (!pair || !enif_is_atom(env, pair[0]) || !enif_get_ulong(env, pair[1], &arity))
        return false;
    *function = key(pair[0], arity);
    return true;
}

DT_NIF(dt_files_set) {
    ERL_NIF_TERM list = argv[0], head;
    uint64_t functions[MOST] = {FREE};
    unsigned count = 0;

    while (count < MOST && enif_get_list_cell(env, list, &head, &list))
        if (!get_function(env, head, &functions[count++]))
            return enif_make_badarg(env);
    if (!enif_is_empty_list(env, list))
        return enif_make_badarg(env);
    for (unsigned i = 0; i < MOST; i++)
        atomic_store_explicit(&alone[i], functions[i], memory_order_relaxed);
    return atom_ok;
}

/* Checks the module first, because most calls are not of this one. Tracers that users set
   themselves fire both. */
struct dt_file_event dt_files_look(const struct dt_traced *trace) {
    const ERL_NIF_TERM *mfa = dt_tuple(trace->env, trace->term, 3);
    struct dt_location f;

    if (!mfa || mfa[0] != atom_prim_file || !dt_get_call(trace, mfa[0], mfa[1], mfa[2], &f))
        return (struct dt_file_event){.is_of_calls = true};
    return (struct dt_file_event){true, !dt_gate_is_for(trace->state) || !is_alone(&f)};
}

/* -- The decoders ---------------------------------------------------------------------------- */

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
