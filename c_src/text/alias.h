/*
 * Texts for people: Elixir names in Elixir's spelling, and funs.
 */
#ifndef DT_TEXT_ALIAS_H
#define DT_TEXT_ALIAS_H

#include "text/text.h"

/* Spells the aliases of a text as Elixir does: 'Elixir.Shop.Cart':init/1 is Shop.Cart.init/1,
   #Fun<Elixir.Shop.3.61> is #Fun<Shop.3.61>. It must be the last text in the buffer. Returns its
   argument, which may be NULL. */
const char *dt_text_alias(struct dt_text *text, const char *last);

/* A fun, as %T of enif_snprintf writes it; fun M:F/A is written M:F/A, like any location. */
const char *dt_text_fun(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM fun);

#endif
