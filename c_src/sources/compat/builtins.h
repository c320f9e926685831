/*
 * Builtins: whether a function is a BIF or a NIF. Trace events do not contain that. The lists come
 * from Erlang (src/compat/dyntrace_builtins.erl).
 */
#ifndef DT_SOURCES_COMPAT_BUILTINS_H
#define DT_SOURCES_COMPAT_BUILTINS_H

#include <erl_nif.h>
#include <stdbool.h>

enum dt_builtin {
    DT_NOT_BUILTIN, /* a function of Erlang code, or not in the lists */
    DT_BIF,
    DT_NIF,
};

/* At most this many functions of both lists together are stored. */
enum { DT_BUILTINS_MAX = 4096 };

/* For the callbacks: takes no lock, and a bounded number of steps. During a change the result is
   that of the lists before or after it, never of a partial list. */
enum dt_builtin dt_builtin_of(ERL_NIF_TERM module, ERL_NIF_TERM function, unsigned long arity);

/* Replaces the lists, each [{Module, Function, Arity}]. `left_out`: how many did not fit; the last
   NIFs are left out first. Returns false, and changes nothing, for any other terms. */
bool dt_builtins_set(ErlNifEnv *env, ERL_NIF_TERM bifs, ERL_NIF_TERM nifs, unsigned *left_out);

#endif
