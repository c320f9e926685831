#include "sources/call_times.h"

#include <stdatomic.h>
#include <time.h>

#include "text/hash.h"

/*
 * A table of words, each of which is a call: the highest bits identify the process and the
 * function, the others are the time at which the call began. So each access is one atomic operation
 * and never waits. The identification is a part of a hash value: that another call has the same one
 * in the same set happens once in about 16 million lookups of calls that are missing.
 */
enum { SETS_LOG2 = 12, SETS = 1 << SETS_LOG2, WAYS = 4, TIME_BITS = 40 };

#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define US_PER_S UINT64_C(1000000)
#define NS_PER_US 1000

static _Atomic uint64_t calls[SETS][WAYS]; /* 0: free */

/* Microseconds. They start again at 0 every 12 days. */
static uint64_t now(void) {
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return ((uint64_t)time.tv_sec * US_PER_S + (uint64_t)time.tv_nsec / NS_PER_US) & TIME_MASK;
}

static uint64_t since(uint64_t call, uint64_t time) {
    return (time - call) & TIME_MASK;
}

/* The set and the highest bits of the call's word, which are not 0. */
static _Atomic uint64_t *set_of(ERL_NIF_TERM process, const struct dt_location *f, uint64_t *id) {
    uint64_t hash = f->module * DT_HASH_FACTOR + f->function;

    hash = (hash ^ hash >> 32) * DT_HASH_FACTOR + f->arity;
    hash = (hash ^ hash >> 32) * DT_HASH_FACTOR + process;
    hash = (hash ^ hash >> 32) * DT_HASH_FACTOR;
    *id = (hash | UINT64_C(1) << TIME_BITS) & ~TIME_MASK;
    return calls[hash & (SETS - 1)];
}

/* The call with that identification, else a free place, else the oldest call. */
static _Atomic uint64_t *place(_Atomic uint64_t *set, uint64_t id, uint64_t time) {
    _Atomic uint64_t *best = set;
    uint64_t age = 0;

    for (_Atomic uint64_t *at = set; at < set + WAYS; at++) {
        uint64_t call = atomic_load_explicit(at, memory_order_relaxed);
        uint64_t its_age = call ? since(call, time) : TIME_MASK;

        if (call && (call & ~TIME_MASK) == id)
            return at;
        if (its_age > age) {
            age = its_age;
            best = at;
        }
    }
    return best;
}

void dt_call_times_begin(ERL_NIF_TERM process, const struct dt_location *f) {
    uint64_t id, time = now();
    _Atomic uint64_t *set = set_of(process, f, &id);

    atomic_store_explicit(place(set, id, time), id | time, memory_order_relaxed);
}

bool dt_call_times_end(ERL_NIF_TERM process, const struct dt_location *f, uint64_t *duration_ns) {
    uint64_t id;
    _Atomic uint64_t *set = set_of(process, f, &id);

    for (_Atomic uint64_t *at = set; at < set + WAYS; at++) {
        uint64_t call = atomic_load_explicit(at, memory_order_relaxed);

        if (!call || (call & ~TIME_MASK) != id ||
            !atomic_compare_exchange_strong_explicit(at, &call, 0, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        *duration_ns = since(call, now()) * NS_PER_US;
        return true;
    }
    return false;
}
