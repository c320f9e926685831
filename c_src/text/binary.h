/*
 * Unaligned binaries: their bytes do not start at a byte boundary, for example after a match of
 * <<_:1, ...>>. The runtime copies the whole binary before it returns the bytes, which cannot be
 * predicted. So the copy is detected afterwards, and the walk of a term ends at the first large
 * one, because a term may contain the same binary many times.
 */
#ifndef DT_TEXT_BINARY_H
#define DT_TEXT_BINARY_H

#include <erl_nif.h>
#include <stdbool.h>

/* Whether `binary`, which enif_inspect_binary returned for `term`, is such a copy, and large. */
bool dt_binary_is_large_copy(ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifBinary *binary);

#endif
