#include "dt_follower.h"

/* Negative when overdrawn. Of 64 bits on every machine, as a budget may be. */
static _Atomic int64_t left = DT_BUDGET_INFINITE;
static atomic_bool infinite = true;
static _Atomic uint64_t skipped;

void dt_follower_budget(int64_t events) {
    atomic_store_explicit(&left, events, memory_order_relaxed);
    atomic_store_explicit(&infinite, events == DT_BUDGET_INFINITE, memory_order_relaxed);
}

/* Without a budget the schedulers share nothing that is written. */
static bool is_infinite(void) {
    return atomic_load_explicit(&infinite, memory_order_relaxed);
}

static bool skip(void) {
    atomic_fetch_add_explicit(&skipped, 1, memory_order_relaxed);
    return false;
}

bool dt_follower_may(void) {
    return is_infinite() || atomic_load_explicit(&left, memory_order_relaxed) > 0 || skip();
}

bool dt_follower_take(void) {
    return is_infinite() || atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) > 0 || skip();
}

uint64_t dt_follower_skipped(void) {
    return atomic_load_explicit(&skipped, memory_order_relaxed);
}

atomic_bool dt_follower_unserved[DT_PROBES];

void dt_follower_serve(enum dt_probe probe, bool served) {
    atomic_store_explicit(&dt_follower_unserved[probe], !served, memory_order_relaxed);
}
