/*
 * The native records of OTP 29. erl_nif has no getters for them, and the runtime's %T writes all of
 * their values, however large. So their words on the heap are read:
 *
 *     term ──> [ header | definition | value, … ]
 *                              │
 *                              └──> {Order, Hash, Module, Name, IsExported, Key, …}, a tuple
 *
 * When the library is loaded, dt_record_calibrate compares this layout with records of known
 * contents. In a runtime with another layout, no term is taken for a record.
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

/* False for a term that is no record. Only for terms that no getter of erl_nif takes. */
bool dt_record_get(ErlNifEnv *env, ERL_NIF_TERM term, struct dt_record *record);

/* Once, while the library is loaded. */
void dt_record_calibrate(ErlNifEnv *env);

#endif
