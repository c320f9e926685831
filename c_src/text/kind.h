/*
 * The kind of a term. erl_nif's function for it, enif_term_type, aborts the VM for kinds that are
 * newer than its enum, such as the native records of OTP 29, so it is never called. The kind is
 * determined by getters (enif_is_tuple, …), which return false for unknown kinds.
 */
#ifndef DT_TEXT_KIND_H
#define DT_TEXT_KIND_H

#include <stdatomic.h>

#include "text/heap.h"

/* The getters are tried from the last to the first. A bitstring has none: it is the remaining kind.
 */
enum dt_kind {
    DT_UNKNOWN,
    DT_BITSTRING, /* whose bits are not whole bytes */
    DT_RECORD,    /* a native record that dt_record_get accepts */
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

/* The getter of each kind; none for DT_UNKNOWN. */
extern dt_is_kind *const dt_kind_is[DT_KINDS];

/*
 * The getter to try first: that of the last term with the same lowest bits, taken from the header
 * if the term has one. The runtime encodes the kind in these bits, but this is only a hint: the
 * getter decides.
 */
enum { DT_KIND_HINTS = 64 };

extern atomic_uchar dt_kind_hints[DT_KIND_HINTS];

static inline atomic_uchar *dt_kind_hint(ERL_NIF_TERM term) {
    return &dt_kind_hints[(dt_heap_is_pointer(term) ? *dt_heap_of(term) : term) % DT_KIND_HINTS];
}

/* Tries all getters. */
enum dt_kind dt_kind_find(ErlNifEnv *env, ERL_NIF_TERM term);

/* The kind that the term probably has. */
static inline enum dt_kind dt_kind_guess(ERL_NIF_TERM term) {
    return atomic_load_explicit(dt_kind_hint(term), memory_order_relaxed);
}

static inline enum dt_kind dt_kind(ErlNifEnv *env, ERL_NIF_TERM term) {
    enum dt_kind kind = dt_kind_guess(term);

    return kind != DT_UNKNOWN && dt_kind_is[kind](env, term) ? kind : dt_kind_find(env, term);
}

/* Called once, while the library is loaded: determines the layout of terms in this runtime. False:
 * out of memory. */
bool dt_kind_calibrate(ErlNifEnv *env);

#endif
