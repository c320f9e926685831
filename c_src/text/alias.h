/*
 * Texts for people: Elixir's names in Elixir's spelling, and funs.
 */
#ifndef DT_TEXT_ALIAS_H
#define DT_TEXT_ALIAS_H

#include "text/text.h"

/* Spells the aliases of a text as Elixir does: 'Elixir.Shop.Cart':init/1 is Shop.Cart.init/1. The
   text is the one that was made last. Takes NULL, too, and returns its argument. */
const char *dt_text_alias(struct dt_text *text, const char *last);

/* A fun, as %T of enif_snprintf writes it; of fun M:F/A only M:F/A, as of any location. */
const char *dt_text_fun(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM fun);

#endif
