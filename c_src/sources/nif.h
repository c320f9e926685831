/*
 * The type of a NIF.
 */
#ifndef DT_SOURCES_NIF_H
#define DT_SOURCES_NIF_H

#include <erl_nif.h>

typedef ERL_NIF_TERM dt_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
