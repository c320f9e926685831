/*
 * The size of a term in words, as counted by erts_debug:flat_size/1: the size of a copy
 * on a process's heap, without the bytes of off-heap binaries.
 *
 * The walk is bounded. The result is a lower bound for a term of more than DT_SIZE_TERMS subterms,
 * one that is nested deeper than DT_SIZE_DEPTH, and one that has a map of more than DT_SIZE_MAP
 * keys, an integer of more than 64 bits, a bitstring, a fun or a term of an unknown kind.
 */
#ifndef DT_SOURCES_COMPAT_SIZE_H
#define DT_SOURCES_COMPAT_SIZE_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

enum { DT_SIZE_TERMS = 1000, DT_SIZE_DEPTH = 50, DT_SIZE_MAP = 32 };

/* Sets sizes that differ between releases, as measured by Erlang: a tuple of integers, in the order
   of the enum in size.c. */
bool dt_size_calibrate(ErlNifEnv *env, ERL_NIF_TERM sizes);

uint32_t dt_size(ErlNifEnv *env, ERL_NIF_TERM term);

#endif
