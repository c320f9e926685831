/*
 * Any term as text, in full or as its shape.
 */
#ifndef DT_TEXT_TERM_H
#define DT_TEXT_TERM_H

#include "text/text.h"

/*
 * Any term, as the %T of enif_snprintf writes it, in time that depends on the text alone. A text
 * that is longer than DT_TERM_MAX bytes is cut at a character boundary and ends in "...". Where it
 * differs from %T:
 *
 *   - Characters past ASCII of strings are UTF-8.
 *   - A map of more than 32 keys is #{Key=>Value,...} too, in an order of its own.
 *   - A list or binary is a string if all of it is printable that the text has room for.
 *   - A term of a kind that erl_nif has no getter for is <term>. Native records are read
 *     without one (record.h).
 *   - The text ends before an integer of more digits than it has room for.
 *   - After a large unaligned binary, the text ends before the next binary: the runtime copies an
 *     unaligned binary whole (binary.h), the only step here whose time depends on the term's size.
 */
const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

/* The arguments of a call, a list, in the same way: as a list where the term would be a string, and
   each argument by itself in a shape: [65,<<"tea">>], [integer(),{binary,3}]. */
const char *dt_text_arguments(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM list);

/*
 * Sets whether texts show the structure of terms instead of their contents: tuples and atoms as
 * they are, other terms by type and size, as in
 * {reply,reference(),{binary,17},{list,3},{map,2},integer()}. Lists are counted to 1,000:
 * {list,1000...}. A native record is shown with its name and the names of its module and fields:
 * #shop:order{id=integer(),customer={binary,6}}.
 */
void dt_term_show_shapes(bool show);

/* Once, while the library is loaded: measures what dt_text_term needs of this runtime. Integers
   between the two have at most DT_TERM_MAX digits. False: bad arguments, or out of memory. */
bool dt_term_calibrate(ErlNifEnv *env, ERL_NIF_TERM least, ERL_NIF_TERM greatest);

#endif
