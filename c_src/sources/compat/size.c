#include "sources/compat/size.h"

#include "text/binary.h"
#include "text/kind.h"
#include "text/record.h"

enum { HEAP_BINARY, OFF_HEAP_BINARY, BITSTRING, REFERENCE, FUN, EXTERNAL_PID, SIZES };

/* The maximum size of a heap binary in bytes. */
enum { HEAP_BINARY_MAX = 64 };

static uint32_t size_of[SIZES];

bool dt_size_calibrate(ErlNifEnv *env, ERL_NIF_TERM sizes) {
    const ERL_NIF_TERM *el;
    unsigned measured[SIZES];
    int arity;

    if (!enif_get_tuple(env, sizes, &arity, &el) || arity != SIZES)
        return false;
    for (int i = 0; i < SIZES; i++)
        if (!enif_get_uint(env, el[i], &measured[i]))
            return false;
    for (int i = 0; i < SIZES; i++)
        size_of[i] = measured[i];
    return true;
}

static uint32_t words(size_t bytes) {
    return (uint32_t)((bytes + sizeof(ERL_NIF_TERM) - 1) / sizeof(ERL_NIF_TERM));
}

/* Integers that leave four bits of a word free are immediate; larger ones have a header. */
static uint32_t integer_size(ErlNifEnv *env, ERL_NIF_TERM term) {
    const int64_t small = (int64_t)1 << (8 * sizeof term - 5);
    ErlNifSInt64 i;
    ErlNifUInt64 u;

    if (enif_get_int64(env, term, &i)) {
        if (i >= -small && i < small)
            return 0;
        return 1 + (i >= -(int64_t)UINT32_MAX && i <= UINT32_MAX ? 1 : words(sizeof i));
    }
    return 1 + words(sizeof u) + (enif_get_uint64(env, term, &u) ? 0 : 1);
}

struct walk {
    ErlNifEnv *env;
    uint64_t size;
    int terms; /* how many more may be visited */
};

static void add_bitstring(struct walk *walk, ERL_NIF_TERM term) {
    ErlNifBinary binary;

    if (!enif_inspect_binary(walk->env, term, &binary)) {
        walk->size += size_of[BITSTRING];
        return;
    }
    walk->size += binary.size <= HEAP_BINARY_MAX ? size_of[HEAP_BINARY] + words(binary.size)
                                                 : size_of[OFF_HEAP_BINARY];
    if (dt_binary_is_large_copy(walk->env, term, &binary))
        walk->terms = 0;
}

/* NOLINTBEGIN(misc-no-recursion): at most DT_SIZE_DEPTH levels */

static void add(struct walk *walk, ERL_NIF_TERM term, int depth);

static void add_list(struct walk *walk, ERL_NIF_TERM list, int depth) {
    ERL_NIF_TERM head;

    while (walk->terms > 0 && dt_list_cell(walk->env, list, &head, &list)) {
        walk->size += 2;
        add(walk, head, depth);
    }
    /* the tail of an improper list */
    if (!enif_is_list(walk->env, list))
        add(walk, list, depth);
}

static void add_tuple(struct walk *walk, ERL_NIF_TERM tuple, int depth) {
    const ERL_NIF_TERM *el;
    int arity;

    if (!enif_get_tuple(walk->env, tuple, &arity, &el) || arity == 0)
        return;
    walk->size += 1 + (uint64_t)arity;
    for (int i = 0; i < arity && walk->terms > 0; i++)
        add(walk, el[i], depth);
}

/* Header, size, pointer to the keys, and the values; a tuple of the keys. */
static void add_map(struct walk *walk, ERL_NIF_TERM map, int depth) {
    ErlNifMapIterator i;
    ERL_NIF_TERM key, value;
    size_t keys;

    if (!enif_get_map_size(walk->env, map, &keys))
        return;
    walk->size += keys == 0 ? 3 : 4 + 2 * (uint64_t)keys;
    if (keys > DT_SIZE_MAP ||
        !enif_map_iterator_create(walk->env, map, &i, ERL_NIF_MAP_ITERATOR_FIRST))
        return;
    while (walk->terms > 0 && enif_map_iterator_get_pair(walk->env, &i, &key, &value)) {
        add(walk, key, depth);
        add(walk, value, depth);
        enif_map_iterator_next(walk->env, &i);
    }
    enif_map_iterator_destroy(walk->env, &i);
}

/* Header, definition (a tuple), and the values. */
static void add_record(struct walk *walk, ERL_NIF_TERM term, int depth) {
    struct dt_record record;

    if (!dt_record_get(walk->env, term, &record))
        return;
    walk->size += 2 + (uint64_t)record.fields;
    add(walk, record.definition, depth);
    for (unsigned i = 0; i < record.fields && walk->terms > 0; i++)
        add(walk, record.values[i], depth);
}

static void add(struct walk *walk, ERL_NIF_TERM term, int depth) {
    ErlNifPid pid;

    if (depth == DT_SIZE_DEPTH)
        walk->terms = 0;
    if (walk->terms-- <= 0)
        return;
    switch (dt_kind(walk->env, term)) {
    case DT_LIST:
        add_list(walk, term, depth + 1);
        break;
    case DT_TUPLE:
        add_tuple(walk, term, depth + 1);
        break;
    case DT_MAP:
        add_map(walk, term, depth + 1);
        break;
    case DT_FLOAT:
        walk->size += 1 + words(sizeof(double));
        break;
    case DT_INTEGER:
        walk->size += integer_size(walk->env, term);
        break;
    case DT_RECORD:
        add_record(walk, term, depth + 1);
        break;
    case DT_BINARY:
    case DT_BITSTRING:
        add_bitstring(walk, term);
        break;
    case DT_REFERENCE:
        walk->size += size_of[REFERENCE];
        break;
    case DT_FUN:
        walk->size += size_of[FUN];
        break;
    case DT_PID:
        walk->size += enif_get_local_pid(walk->env, term, &pid) ? 0 : size_of[EXTERNAL_PID];
        break;
    case DT_ATOM:
    case DT_PORT: /* a local one is immediate, like an atom */
    case DT_UNKNOWN:
        break;
    }
}

/* NOLINTEND(misc-no-recursion) */

uint32_t dt_size(ErlNifEnv *env, ERL_NIF_TERM term) {
    struct walk walk = {.env = env, .terms = DT_SIZE_TERMS};

    add(&walk, term, 0);
    return walk.size < UINT32_MAX ? (uint32_t)walk.size : UINT32_MAX;
}
