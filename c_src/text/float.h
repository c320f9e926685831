/*
 * Floats as text.
 */
#ifndef DT_TEXT_FLOAT_H
#define DT_TEXT_FLOAT_H

#include "text/text.h"

/* Appends a float as the runtime's %T writes it, but in less time. */
bool dt_put_float(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

#endif
