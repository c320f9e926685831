/*
 * Binaries whose bytes the runtime copies before it shows them: those that start in the middle
 * of a byte, as what is matched behind <<_:1, ...>> does. It copies all of it, and nothing tells
 * before that it will. So this can only be said afterwards, and whoever walks a term stops
 * at the first large one: a term may hold the same one many times.
 */
#ifndef DT_BINARY_H
#define DT_BINARY_H

#include <erl_nif.h>
#include <stdbool.h>

/* Whether `binary`, which enif_inspect_binary made of `term`, is such a copy, and large. */
bool dt_binary_is_large_copy(ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifBinary *binary);

#endif
