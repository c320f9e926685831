/*
 * Hash values for tables whose size is a power of two.
 */
#ifndef DT_TEXT_HASH_H
#define DT_TEXT_HASH_H

#include <erl_nif.h>
#include <stdint.h>

/* 2^64 divided by the golden ratio: multiples of it are spread evenly over the highest bits. */
#define DT_HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)

/* An index of `bits` bits for a term that is one word. */
static inline unsigned dt_hash(uint64_t word, unsigned bits) {
    return (unsigned)(word * DT_HASH_FACTOR >> (64 - bits));
}

/* The same for a function; module and name are atoms. */
static inline unsigned dt_hash_function(ERL_NIF_TERM module, ERL_NIF_TERM function,
                                        unsigned long arity, unsigned bits) {
    return dt_hash(module * DT_HASH_FACTOR + function + arity, bits);
}

#endif
