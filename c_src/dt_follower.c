#include "dt_follower.h"

#include "dt_atoms.h"

/* A local pid is one word; 0 is none. */
static _Atomic(ERL_NIF_TERM) worker;
static atomic_bool active;

ERL_NIF_TERM dt_follower_claim(ErlNifEnv *env) {
    ErlNifPid self;
    ERL_NIF_TERM before;

    if (!enif_self(env, &self))
        return atom_undefined;
    before = atomic_exchange_explicit(&worker, self.pid, memory_order_relaxed);
    return before ? before : atom_undefined;
}

void dt_follower_activate(bool on) {
    atomic_store_explicit(&active, on, memory_order_relaxed);
}

bool dt_follower_is_alive(ErlNifEnv *env) {
    ErlNifPid pid = {.pid = atomic_load_explicit(&worker, memory_order_relaxed)};

    return atomic_load_explicit(&active, memory_order_relaxed) && pid.pid &&
           enif_is_process_alive(env, &pid);
}

/* Below zero by as many as came too late. */
static atomic_long left = DT_BUDGET_INFINITE;
static atomic_bool infinite = true;
static atomic_ulong skipped;

void dt_follower_budget(long events) {
    atomic_store_explicit(&left, events, memory_order_relaxed);
    atomic_store_explicit(&infinite, events == DT_BUDGET_INFINITE, memory_order_relaxed);
}

bool dt_follower_take(void) {
    /* Without a budget the schedulers share nothing that is written. */
    if (atomic_load_explicit(&infinite, memory_order_relaxed) ||
        atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) > 0)
        return true;
    atomic_fetch_add_explicit(&skipped, 1, memory_order_relaxed);
    return false;
}

unsigned long dt_follower_skipped(void) {
    return atomic_load_explicit(&skipped, memory_order_relaxed);
}

atomic_bool dt_follower_unserved[DT_PROBES];

void dt_follower_serve(enum dt_probe probe, bool served) {
    atomic_store_explicit(&dt_follower_unserved[probe], !served, memory_order_relaxed);
}
