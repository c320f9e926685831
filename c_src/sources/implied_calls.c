#include "sources/implied_calls.h"

#include <stdatomic.h>

#include "catalogue/atoms.h"
#include "sources/gate.h"
#include "sources/parts.h"
#include "text/heap.h"

/* -- Functions that are traced only for their group ------------------------------------------ */

enum { MOST = 128, ARITY_BITS = 8, FREE = 0 };

/* Elements are an atom and an arity; free ones are at the end. No two of these modules have
   functions of the same name and arity. A read during a write may assign one event to the wrong
   consumer. */
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
    const ERL_NIF_TERM *mfa = dt_tuple(env, term, 3);
    unsigned long arity;

    if (!mfa || !enif_is_atom(env, mfa[1]) || !enif_get_ulong(env, mfa[2], &arity))
        return false;
    *function = key(mfa[1], arity);
    return true;
}

DT_NIF(dt_implied_calls_set) {
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

/* -- The group of a call ---------------------------------------------------------------------- */

static enum dt_group group_of(ERL_NIF_TERM module) {
#define GROUP(group)
#define MODULE_GROUP(group, of)                                                                    \
    if (module == atom_##of)                                                                       \
        return DT_GROUP_##group;
#include "sources/routes.def"
    return DT_GROUPS;
}

/* Checks the module first, because most calls are not of these modules. Tracers that users set
   themselves fire the probes of both groups. */
struct dt_implied_call dt_implied_calls_look(const struct dt_traced *trace) {
    const ERL_NIF_TERM *mfa = dt_tuple(trace->env, trace->term, 3);
    enum dt_group group = mfa ? group_of(mfa[0]) : DT_GROUPS;
    struct dt_location f;

    if (group == DT_GROUPS || !dt_get_call(trace, mfa[0], mfa[1], mfa[2], &f))
        return (struct dt_implied_call){DT_GROUPS, true};
    return (struct dt_implied_call){group, !dt_gate_is_for(trace->state) || !is_alone(&f)};
}
