/*
 * Strings and names that a program passes, as text.
 */
#ifndef DT_TEXT_STRING_H
#define DT_TEXT_STRING_H

#include "text/text.h"

/* Iodata, in which integers above 255 are characters as in unicode:chardata(). Bytes that are not
   UTF-8 are read as Latin-1, NUL becomes U+FFFD. A text that is longer than DT_STRING_MAX bytes is
   cut like a term. The walk is bounded: a string with more than 256 nested lists, or more than
   8,192 list cells, is cut there. */
const char *dt_text_string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM string);

/* The same, or the characters of an atom. */
const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name);

/* The names of the atoms of a list, joined by dots: phoenix.endpoint.stop. Another element is `_`.
   The text ends before a tail that is not a list. It is cut like a string. */
const char *dt_text_dotted(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM list);

#endif
