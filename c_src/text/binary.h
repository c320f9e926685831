/*
 * Unaligned binaries: their bytes do not start at a byte boundary, as of a binary that was matched
 * behind <<_:1, ...>>. The runtime copies such a binary whole before it returns the bytes, and
 * nothing shows beforehand that it will. So the copy is found afterwards, and the walk of a term
 * ends at the first large one: a term may contain the same binary many times.
 */
#ifndef DT_TEXT_BINARY_H
#define DT_TEXT_BINARY_H

#include <erl_nif.h>
#include <stdbool.h>

/* Whether `binary`, which enif_inspect_binary returned for `term`, is such a copy, and large. */
bool dt_binary_is_large_copy(ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifBinary *binary);

#endif
