/*
 * The kind of a term. erl_nif's own call for it, enif_term_type, aborts the VM for kinds that are
 * newer than its enum, such as the native records of OTP 29; so it is called nowhere, and kinds are
 * told by getters, which answer no to what they do not know.
 */
#ifndef DT_KIND_H
#define DT_KIND_H

#include <stdatomic.h>

#include "dt_heap.h"

/* From the last one on they are asked for: bits are told by being nothing else. */
enum dt_kind {
    DT_UNKNOWN,
    DT_BITSTRING, /* of bits that are no whole bytes */
    DT_RECORD,    /* a native record that dt_record_get takes */
    DT_FLOAT,
    DT_INTEGER,
    DT_PORT,
    DT_FUN,
    DT_REFERENCE,
    DT_PID,
    DT_MAP,
    DT_BINARY,
    DT_LIST,
    DT_TUPLE,
    DT_ATOM,
};

enum { DT_KINDS = DT_ATOM + 1 };

typedef int dt_is_kind(ErlNifEnv *env, ERL_NIF_TERM term);

/* The getters, but for DT_UNKNOWN. */
extern dt_is_kind *const dt_kind_is[DT_KINDS];

/*
 * Which getter to ask first: the one that knew the last term with the same lowest bits, those of
 * the header where it has one. There the runtime keeps the kind; but it is a hint, and the getter
 * decides.
 */
enum { DT_KIND_HINTS = 64 };

extern atomic_uchar dt_kind_hints[DT_KIND_HINTS];

static inline atomic_uchar *dt_kind_hint(ERL_NIF_TERM term) {
    return &dt_kind_hints[(dt_heap_is_pointer(term) ? *dt_heap_of(term) : term) % DT_KIND_HINTS];
}

/* Asks all getters. */
enum dt_kind dt_kind_find(ErlNifEnv *env, ERL_NIF_TERM term);

static inline enum dt_kind dt_kind(ErlNifEnv *env, ERL_NIF_TERM term) {
    enum dt_kind kind = atomic_load_explicit(dt_kind_hint(term), memory_order_relaxed);

    return kind != DT_UNKNOWN && dt_kind_is[kind](env, term) ? kind : dt_kind_find(env, term);
}

/* Learns from this runtime what dt_kind needs. */
bool dt_kind_calibrate(ErlNifEnv *env);

#endif
