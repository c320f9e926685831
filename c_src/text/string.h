/*
 * Strings and names that a program passes, as text.
 */
#ifndef DT_TEXT_STRING_H
#define DT_TEXT_STRING_H

#include "text/text.h"

/* Iodata, in which integers past 255 are characters as in unicode:chardata(). Bytes that are not
   UTF-8 are taken for Latin-1, NUL becomes U+FFFD. A text that is longer than DT_STRING_MAX bytes
   is cut as a term is. The walk is bounded: a string that nests deeper than 256 lists, or has more
   than 8,192 list cells, is cut there. */
const char *dt_text_string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM string);

/* The same, or an atom's characters. */
const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name);

#endif
