/*
 * The type of NIFs, and the head of their definitions: DT_NIF(dt_report) { … }
 */
#ifndef DT_SOURCES_NIF_H
#define DT_SOURCES_NIF_H

#include <erl_nif.h>

#include "catalogue/unused.h"

typedef ERL_NIF_TERM dt_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#define DT_NIF(name)                                                                               \
    ERL_NIF_TERM name(DT_UNUSED ErlNifEnv *env, DT_UNUSED int argc,                                \
                      DT_UNUSED const ERL_NIF_TERM argv[])

#endif
