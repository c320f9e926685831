/*
 * Erlang's texts of terms and names in Elixir's spelling, for the events of Elixir nodes.
 *
 *     {error,#{'__struct__'=>'Elixir.Shop.Order',id=>17}}    {:error, %Shop.Order{id: 17}}
 *     [{file,"lib/shop.ex"},{line,3}], <<"tea">>             [file: ~c"lib/shop.ex", line: 3],
 * "tea"
 *
 * The texts may be truncated, and their contents may be hidden (shared/contents.h).
 */
#pragma once

#include <glib.h>

/* Appends a term. */
void dt_elixir_term(GString *to, const char *term);

/* The name without the quotes and the prefix of an alias: 'Elixir.Shop.Cart' is Shop.Cart. NULL for
   any other name. To be freed by g_free. */
char *dt_elixir_alias(const char *name);

/* The same for a function: 'Elixir.Shop':pay/1 is Shop.pay/1. */
char *dt_elixir_function(const char *function);
