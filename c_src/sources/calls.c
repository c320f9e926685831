#include "sources/calls.h"

#include "catalogue/atoms.h"
#include "sources/call_times.h"
#include "sources/gate.h"
#include "sources/parts.h"
#include "text/hash.h"

_Atomic int64_t dt_calls_left = DT_CALLS_INFINITE;

/*
 * A hash table with open addressing, from which nothing is removed: it has as many functions as
 * fit, and one count for the others. A slot is free, then taken by one scheduler, then has its
 * function, which never changes.
 */
enum {
    SLOTS_LOG2 = 13,
    SLOTS = 1 << SLOTS_LOG2,
    STEPS = 32, /* the maximum distance of a function from its first slot */
    FREE = 0,
    TAKEN = 1, /* no term has this value */
};

static struct slot {
    _Atomic(ERL_NIF_TERM) module; /* FREE, TAKEN or an atom */
    ERL_NIF_TERM function;        /* written before the module */
    unsigned long arity;
    _Atomic(uint64_t) count;
} slots[SLOTS];

static _Atomic(uint64_t) others;

/* A call that is counted while the budget is lifted is still taken from it. */
static bool is_infinite(void) {
    return atomic_load_explicit(&dt_calls_left, memory_order_relaxed) > DT_CALLS_INFINITE / 2;
}

/* -- Counting ------------------------------------------------------------------------- */

static bool take(struct slot *slot, const struct dt_location *f) {
    ERL_NIF_TERM expected = FREE;

    if (!atomic_compare_exchange_strong_explicit(&slot->module, &expected, TAKEN,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    slot->function = f->function;
    slot->arity = f->arity;
    atomic_store_explicit(&slot->module, f->module, memory_order_release);
    return true;
}

/* The count of the function. If another scheduler is just storing the function, it is stored twice;
   the counts are added when they are read. */
static _Atomic(uint64_t) *count_of(const struct dt_location *f) {
    unsigned i = dt_hash_function(f->module, f->function, f->arity, SLOTS_LOG2);

    for (int step = 0; step < STEPS; step++, i = (i + 1) % SLOTS) {
        struct slot *slot = &slots[i];
        ERL_NIF_TERM module = atomic_load_explicit(&slot->module, memory_order_acquire);

        if (module == f->module ? slot->function == f->function && slot->arity == f->arity
                                : module == FREE && take(slot, f))
            return &slot->count;
    }
    return &others;
}

void dt_calls_note(const struct dt_traced *trace) {
    bool is_counted = dt_gate_is_for(trace->state) && !is_infinite();
    bool is_timed = atomic_load_explicit(&dt_call_times_used, memory_order_relaxed);
    struct dt_location f;

    if (trace->tag != atom_call || !(is_counted || is_timed) ||
        !dt_get_location(trace, trace->term, &f))
        return;
    if (is_timed)
        dt_call_times_forget(trace->tracee, &f);
    if (!is_counted)
        return;
    atomic_fetch_add_explicit(count_of(&f), 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&dt_calls_left, 1, memory_order_relaxed);
}

/* -- For the worker ------------------------------------------------------------------- */

static ERL_NIF_TERM add(ErlNifEnv *env, const struct slot *slot, ERL_NIF_TERM module,
                        uint64_t count, ERL_NIF_TERM list) {
    ERL_NIF_TERM mfa =
        enif_make_tuple3(env, module, slot->function, enif_make_ulong(env, slot->arity));

    return enif_make_list_cell(env, enif_make_tuple2(env, mfa, enif_make_uint64(env, count)), list);
}

DT_NIF(dt_calls_set_budget) {
    ErlNifSInt64 calls = DT_CALLS_INFINITE;

    if (!enif_is_identical(argv[0], atom_infinity) &&
        (!enif_get_int64(env, argv[0], &calls) || calls < 0))
        return enif_make_badarg(env);
    atomic_store_explicit(&dt_calls_left, calls, memory_order_relaxed);
    return atom_ok;
}

DT_NIF(dt_calls_take) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
        ERL_NIF_TERM module = atomic_load_explicit(&slot->module, memory_order_acquire);
        uint64_t count = module == FREE || module == TAKEN
                             ? 0
                             : atomic_exchange_explicit(&slot->count, 0, memory_order_relaxed);

        if (count > 0)
            list = add(env, slot, module, count, list);
    }
    return enif_make_tuple2(
        env, list,
        enif_make_uint64(env, atomic_exchange_explicit(&others, 0, memory_order_relaxed)));
}
