#include "text/kind.h"

#include "catalogue/unused.h"
#include "text/record.h"

/* -- Kinds without a getter in erl_nif -------------------------------------------------- */

static int is_float(ErlNifEnv *env, ERL_NIF_TERM term) {
    double number;

    return enif_get_double(env, term, &number);
}

static int is_integer(ErlNifEnv *env, ERL_NIF_TERM term) {
    ErlNifSInt64 i;

    return enif_get_int64(env, term, &i) || (enif_is_number(env, term) && !is_float(env, term));
}

static int is_record(ErlNifEnv *env, ERL_NIF_TERM term) {
    struct dt_record record;

    return dt_record_get(env, term, &record);
}

/* In an environment that is never freed, because callbacks read it. */
static ERL_NIF_TERM empty_binary;

/* For terms that no other getter accepts. In the order of terms, bitstrings come last; they are on
   the heap, so other terms are not compared. */
static int is_bitstring(DT_UNUSED ErlNifEnv *env, ERL_NIF_TERM term) {
    return dt_heap_is_pointer(term) && enif_compare(term, empty_binary) > 0;
}

/* -- The kinds ------------------------------------------------------------------------- */

dt_is_kind *const dt_kind_is[DT_KINDS] = {
    [DT_ATOM] = enif_is_atom,      [DT_INTEGER] = is_integer,    [DT_TUPLE] = enif_is_tuple,
    [DT_LIST] = enif_is_list,      [DT_BINARY] = enif_is_binary, [DT_MAP] = enif_is_map,
    [DT_PID] = enif_is_pid,        [DT_REFERENCE] = enif_is_ref, [DT_FUN] = enif_is_fun,
    [DT_PORT] = enif_is_port,      [DT_FLOAT] = is_float,        [DT_RECORD] = is_record,
    [DT_BITSTRING] = is_bitstring,
};

atomic_uchar dt_kind_hints[DT_KIND_HINTS];

/* A bitstring does not set a hint: its header has the bits of a binary, which is more frequent. */
enum dt_kind dt_kind_find(ErlNifEnv *env, ERL_NIF_TERM term) {
    enum dt_kind kind = DT_KINDS - 1;

    while (kind != DT_UNKNOWN && !dt_kind_is[kind](env, term))
        kind--;
    if (kind != DT_UNKNOWN && kind != DT_BITSTRING)
        atomic_store_explicit(dt_kind_hint(term), kind, memory_order_relaxed);
    return kind;
}

bool dt_kind_calibrate(ErlNifEnv *env) {
    static ErlNifEnv *lasting;

    if (lasting)
        return true;
    if (!(lasting = enif_alloc_env()))
        return false;
    dt_heap_find(lasting);
    if (!enif_make_new_binary(lasting, 0, &empty_binary))
        return false;
    dt_record_calibrate(env);
    return true;
}
