/*
 * Any term as text, in full or as its shape.
 */
#ifndef DT_TEXT_TERM_H
#define DT_TEXT_TERM_H

#include "text/text.h"

/*
 * Any term, as the %T of enif_snprintf writes it, in time that depends only on the text. A text
 * that is longer than DT_TERM_MAX bytes is cut at a character boundary and ends in "...".
 * Differences from %T:
 *
 *   - Characters past ASCII in strings are UTF-8.
 *   - A map of more than 32 keys is also #{Key=>Value,...}, in an unspecified order.
 *   - A list or binary is a string if the part that fits into the text is printable.
 *   - A term of a kind for which erl_nif has no getter is <term>. Native records are read
 *     without one (record.h).
 *   - The text ends before an integer that has more digits than fit.
 *   - After a large unaligned binary, the text ends before the next binary: the runtime copies an
 *     unaligned binary as a whole (binary.h), which is the only step whose time depends on the
 *     term's size.
 */
const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

/* A list of the arguments of a call, in the same way, except that it is never written as a string,
   and that its shape has the shape of each argument: [65,<<"tea">>], [integer(),{binary,3}]. */
const char *dt_text_arguments(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM list);

/* A map of `count` keys, which are atoms, in this order, written in the same way. Its shape has the
   shape of each value: #{route=>{binary,11},status=>integer()}. */
const char *dt_text_map(struct dt_text *text, ErlNifEnv *env, const ERL_NIF_TERM keys[],
                        const ERL_NIF_TERM values[], unsigned count);

/*
 * Sets whether texts show the structure of terms instead of their contents: tuples and atoms
 * unchanged, other terms by type and size, as in
 * {reply,reference(),{binary,17},{list,3},{map,2},integer()}. Lists are counted to 1,000:
 * {list,1000...}. A native record is shown with its name and the names of its module and fields:
 * #shop:order{id=integer(),customer={binary,6}}.
 */
void dt_term_show_shapes(bool show);

/* Called once, while the library is loaded: measures properties of this runtime for dt_text_term.
   Integers between the two have at most DT_TERM_MAX digits. False: bad arguments, or out of memory.
 */
bool dt_term_calibrate(ErlNifEnv *env, ERL_NIF_TERM least, ERL_NIF_TERM greatest);

#endif
