/*
 * Counts the work of a text. The linker (--wrap) redirects the getters of erl_nif to the functions
 * below: each call is a step, and so is each byte that the runtime writes or copies.
 */
#include "test_work.h"

#include <erl_nif.h>
#include <stdarg.h>

_Thread_local unsigned long test_work;

#define COUNTED(function, parameters, arguments)                                                   \
    int __real_##function parameters;                                                              \
    int __wrap_##function parameters;                                                              \
    int __wrap_##function parameters {                                                             \
        test_work++;                                                                               \
        return __real_##function arguments;                                                        \
    }

/* clang-format off */
COUNTED(enif_get_list_cell,
        (ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *head, ERL_NIF_TERM *tail),
        (env, term, head, tail))
COUNTED(enif_get_tuple,
        (ErlNifEnv *env, ERL_NIF_TERM term, int *arity, const ERL_NIF_TERM **elements),
        (env, term, arity, elements))
COUNTED(enif_get_atom,
        (ErlNifEnv *env, ERL_NIF_TERM term, char *name, unsigned size, ErlNifCharEncoding encoding),
        (env, term, name, size, encoding))
COUNTED(enif_get_uint, (ErlNifEnv *env, ERL_NIF_TERM term, unsigned *value), (env, term, value))
COUNTED(enif_get_long, (ErlNifEnv *env, ERL_NIF_TERM term, long *value), (env, term, value))
COUNTED(enif_get_double, (ErlNifEnv *env, ERL_NIF_TERM term, double *value), (env, term, value))
COUNTED(enif_map_iterator_next, (ErlNifEnv *env, ErlNifMapIterator *iterator), (env, iterator))
COUNTED(enif_map_iterator_get_pair,
        (ErlNifEnv *env, ErlNifMapIterator *iterator, ERL_NIF_TERM *key, ERL_NIF_TERM *value),
        (env, iterator, key, value))
COUNTED(enif_is_empty_list, (ErlNifEnv *env, ERL_NIF_TERM term), (env, term))
COUNTED(enif_compare, (ERL_NIF_TERM one, ERL_NIF_TERM other), (one, other))
/* clang-format on */

int __real_enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifBinary *binary);
int __wrap_enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifBinary *binary);

/* The runtime copies unaligned binaries, so a second call returns another copy. */
int __wrap_enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifBinary *binary) {
    ErlNifBinary again;
    int is_binary = __real_enif_inspect_binary(env, term, binary);

    test_work++;
    if (is_binary && __real_enif_inspect_binary(env, term, &again) && again.data != binary->data)
        test_work += binary->size;
    return is_binary;
}

int __wrap_enif_snprintf(char *out, size_t size, const char *format, ...);

int __wrap_enif_snprintf(char *out, size_t size, const char *format, ...) {
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = enif_vsnprintf(out, size, format, arguments);
    va_end(arguments);
    test_work += n > 0 ? (unsigned long)n : 1;
    return n;
}
