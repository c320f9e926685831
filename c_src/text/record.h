/*
 * The native records of OTP 29. erl_nif has no getters for them, and the runtime's %T writes all of
 * their values, however large. So their words are read from the heap:
 *
 *     term ──> [ header | definition | value, … ]
 *                              │
 *                              └──> {Order, Hash, Module, Name, IsExported, Key, …}, a tuple
 *
 * When the library is loaded, dt_record_calibrate verifies this layout with records of known
 * contents. In a runtime with another layout, terms are never treated as records.
 */
#ifndef DT_TEXT_RECORD_H
#define DT_TEXT_RECORD_H

#include <erl_nif.h>
#include <stdbool.h>

/* Keys and values are in the same order, that of %T. */
struct dt_record {
    ERL_NIF_TERM module, name, definition;
    const ERL_NIF_TERM *keys, *values;
    unsigned fields;
};

/* False for a term that is not a record. Only for terms that no getter of erl_nif accepts. */
bool dt_record_get(ErlNifEnv *env, ERL_NIF_TERM term, struct dt_record *record);

/* Called once, while the library is loaded. */
void dt_record_calibrate(ErlNifEnv *env);

#endif
