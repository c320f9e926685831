#include "sources/call_times.h"

#include <stdatomic.h>
#include <time.h>

#include "text/hash.h"

/*
 * A table of calls. The first word of an entry has a part of the hash value of the process and the
 * function, and the time at which the call began. So a call begins, and is taken, by one atomic
 * operation, and never waits. The second word is the whole hash value. It is written afterwards, so
 * it may be that of another call for a moment: then the call is left out.
 */
enum { SETS_LOG2 = 12, SETS = 1 << SETS_LOG2, WAYS = 4, TIME_BITS = 40, HASH_BITS = 64 };

#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define US_PER_S UINT64_C(1000000)
#define NS_PER_US 1000

static struct call {
    _Atomic uint64_t begin; /* 0: free */
    _Atomic uint64_t hash;
} calls[SETS][WAYS];

atomic_bool dt_call_times_used;

/* Microseconds. They start again at 0 every 12 days. */
static uint64_t now(void) {
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return ((uint64_t)time.tv_sec * US_PER_S + (uint64_t)time.tv_nsec / NS_PER_US) & TIME_MASK;
}

static uint64_t since(uint64_t begin, uint64_t time) {
    return (time - begin) & TIME_MASK;
}

static uint64_t hash_of(ERL_NIF_TERM process, const struct dt_location *f) {
    uint64_t hash = f->module * DT_HASH_FACTOR + f->function;

    hash = (hash ^ hash >> 32) * DT_HASH_FACTOR + f->arity;
    hash = (hash ^ hash >> 32) * DT_HASH_FACTOR + process;
    return (hash ^ hash >> 32) * DT_HASH_FACTOR;
}

/* By the highest bits: the others differ little between processes. */
static struct call *set_of(uint64_t hash) {
    return calls[hash >> (HASH_BITS - SETS_LOG2)];
}

/* The next bits, which are not 0, in place of those of the time. */
static uint64_t id_of(uint64_t hash) {
    return (hash << SETS_LOG2 | UINT64_C(1) << TIME_BITS) & ~TIME_MASK;
}

/* The entry with that identification, else a free one, else that of the oldest call. */
static struct call *entry(struct call *set, uint64_t id, uint64_t time) {
    struct call *best = set;
    uint64_t age = 0;

    for (struct call *at = set; at < set + WAYS; at++) {
        uint64_t begin = atomic_load_explicit(&at->begin, memory_order_relaxed);
        uint64_t its_age = begin ? since(begin, time) : TIME_MASK;

        if (begin && (begin & ~TIME_MASK) == id)
            return at;
        if (its_age > age) {
            age = its_age;
            best = at;
        }
    }
    return best;
}

void dt_call_times_begin(ERL_NIF_TERM process, const struct dt_location *f) {
    uint64_t hash = hash_of(process, f), id = id_of(hash), time = now();
    struct call *call = entry(set_of(hash), id, time);

    if (!atomic_load_explicit(&dt_call_times_used, memory_order_relaxed))
        atomic_store_explicit(&dt_call_times_used, true, memory_order_relaxed);
    atomic_store_explicit(&call->begin, id | time, memory_order_relaxed);
    atomic_store_explicit(&call->hash, hash, memory_order_relaxed);
}

bool dt_call_times_end(ERL_NIF_TERM process, const struct dt_location *f, uint64_t *duration_ns) {
    uint64_t hash = hash_of(process, f), id = id_of(hash);
    struct call *set = set_of(hash);

    for (struct call *at = set; at < set + WAYS; at++) {
        uint64_t begin = atomic_load_explicit(&at->begin, memory_order_relaxed);

        if (!begin || (begin & ~TIME_MASK) != id ||
            atomic_load_explicit(&at->hash, memory_order_relaxed) != hash ||
            !atomic_compare_exchange_strong_explicit(&at->begin, &begin, 0, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        *duration_ns = since(begin, now()) * NS_PER_US;
        return true;
    }
    return false;
}

void dt_call_times_forget(ERL_NIF_TERM process, const struct dt_location *f) {
    uint64_t ignored;

    (void)dt_call_times_end(process, f, &ignored);
}
