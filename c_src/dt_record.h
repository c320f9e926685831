/*
 * The native records of OTP 29. erl_nif has no getters for them, and the runtime's %T writes all of
 * their values, however large. So they are read where they lie:
 *
 *     term ──> [ header | definition | value, … ]
 *                              │
 *                              └──> {Order, Hash, Module, Name, IsExported, Key, …}, a tuple
 *
 * Whether that is so in this runtime is tried when the library is loaded, with records whose
 * contents are known (dt_record_calibrate). In a runtime where it is not, no term is taken for a
 * record.
 */
#ifndef DT_RECORD_H
#define DT_RECORD_H

#include <erl_nif.h>
#include <stdbool.h>

/* The keys are in the order of the values, which is the one that %T has. */
struct dt_record {
    ERL_NIF_TERM module, name, definition;
    const ERL_NIF_TERM *keys, *values;
    unsigned fields;
};

/* For terms that all getters of erl_nif have denied. */
bool dt_record_get(ErlNifEnv *env, ERL_NIF_TERM term, struct dt_record *record);

/* Once, while the library is loaded. */
void dt_record_calibrate(ErlNifEnv *env);

#endif
