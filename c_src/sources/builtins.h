/*
 * Builtins: whether a function is a BIF or a NIF. A tracer is not told: a call of either looks like
 * any other. Erlang knows, and gives the lists (src/sources/dyntrace_builtins.erl).
 */
#ifndef DT_SOURCES_BUILTINS_H
#define DT_SOURCES_BUILTINS_H

#include <erl_nif.h>
#include <stdbool.h>

enum dt_builtin {
    DT_NOT_BUILTIN, /* a function of Erlang code, or not in the lists */
    DT_BIF,
    DT_NIF,
};

/* At most this many functions of both lists together are stored. */
enum { DT_BUILTINS_MAX = 4096 };

/* For the callbacks: takes no lock, and a bounded number of steps. The answer is that of the lists
   before a change or of those after it, never of a part. */
enum dt_builtin dt_builtin_of(ERL_NIF_TERM module, ERL_NIF_TERM function, unsigned long arity);

/* Replaces the lists, each [{Module, Function, Arity}]. `left_out`: how many found no room, the
   last NIFs first. Returns false, and changes nothing, for any other terms. */
bool dt_builtins_set(ErlNifEnv *env, ERL_NIF_TERM bifs, ERL_NIF_TERM nifs, unsigned *left_out);

#endif
