/*
 * Compatibility: the decoders of the providers erlang and org_erlang_otp, and the tables that only
 * they use. Scripts and tools that were written for these providers of a VM that was built with
 * them work with a stock VM.
 *
 * The core calls what is here: the decoders and noters through the routes (route_lists.def), and
 * the functions below. Nothing else of the core depends on it.
 */
#ifndef DT_SOURCES_COMPAT_COMPAT_H
#define DT_SOURCES_COMPAT_COMPAT_H

#include <stdbool.h>

#include "sources/compat/ports.h"
#include "sources/nif.h"

/* Called when the library is loaded. `sizes`: for dt_size_calibrate; `builtins`: {Bifs, Nifs}, each
   [{Module, Function, Arity}]. False for any other terms. */
bool dt_compat_start(ErlNifEnv *env, ERL_NIF_TERM sizes, ERL_NIF_TERM builtins);

/* Bifs, Nifs: replaces the lists; returns how many functions did not fit. */
dt_nif dt_compat_set_builtins;

#define DT_COMPAT_NIFS                                                                             \
    {"set_builtins", 2, dt_compat_set_builtins, 0}, {"set_port", 3, dt_ports_set, 0},              \
        {"take_unknown_ports", 0, dt_ports_take_unknown, 0}, {                                     \
        "count_ports", 0, dt_ports_count, 0                                                        \
    }

#endif
