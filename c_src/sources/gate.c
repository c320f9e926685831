#include "sources/gate.h"

/* A local pid is one word; 0 is not a pid. */
static _Atomic(ERL_NIF_TERM) worker;
static atomic_bool active;

ERL_NIF_TERM dt_gate_claim(ErlNifEnv *env) {
    ErlNifPid self;
    ERL_NIF_TERM before;

    if (!enif_self(env, &self))
        return atom_undefined;
    dt_gate_hold(0);
    before = atomic_exchange_explicit(&worker, self.pid, memory_order_relaxed);
    return before ? before : atom_undefined;
}

void dt_gate_activate(bool on) {
    atomic_store_explicit(&active, on, memory_order_relaxed);
}

_Atomic uint64_t dt_gate_held;

void dt_gate_hold(uint64_t groups) {
    atomic_store_explicit(&dt_gate_held, groups, memory_order_relaxed);
}

bool dt_gate_is_open(ErlNifEnv *env) {
    ErlNifPid pid = {.pid = atomic_load_explicit(&worker, memory_order_relaxed)};

    return atomic_load_explicit(&active, memory_order_relaxed) && pid.pid &&
           enif_is_process_alive(env, &pid);
}

/* Events left in the budget; negative when overdrawn. 64 bits on every machine. */
static _Atomic int64_t left = DT_BUDGET_INFINITE;
static _Atomic uint64_t skipped;

void dt_gate_set_budget(int64_t events) {
    atomic_store_explicit(&left, events, memory_order_relaxed);
}

int64_t dt_gate_left(void) {
    return atomic_load_explicit(&left, memory_order_relaxed);
}

/* Without a budget, schedulers do not write to a shared counter. An event that is fired while the
   budget is lifted is still taken from it. */
static bool is_infinite(void) {
    return atomic_load_explicit(&left, memory_order_relaxed) > DT_BUDGET_INFINITE / 2;
}

static bool skip(void) {
    atomic_fetch_add_explicit(&skipped, 1, memory_order_relaxed);
    return false;
}

bool dt_gate_may_make(void) {
    return is_infinite() || atomic_load_explicit(&left, memory_order_relaxed) > 0 || skip();
}

bool dt_gate_take(void) {
    return is_infinite() || atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) > 0 || skip();
}

uint64_t dt_gate_skipped(void) {
    return atomic_load_explicit(&skipped, memory_order_relaxed);
}

atomic_bool dt_gate_denied[DT_PROBES];

void dt_gate_allow(enum dt_probe probe, bool allowed) {
    atomic_store_explicit(&dt_gate_denied[probe], !allowed, memory_order_relaxed);
}
