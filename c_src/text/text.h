/*
 * Text: Erlang terms as NUL-terminated UTF-8, and the only place that makes it.
 *
 *     struct dt_text text;               on the stack of the callback
 *     dt_text_open(&text);
 *     e->pid = dt_text_id(&text, env, pid);
 *     e->reason = dt_text_term(&text, env, reason);
 *
 *     buffer  [ <0.131.0>\0 {shutdown,...}\0                  free ]
 *               ^e->pid     ^e->reason     ^next              ^end
 *
 * All texts of one event stand one after the other in one buffer on the callback's stack: nothing
 * is allocated and nothing is freed. Every function returns NULL for a term that it does not take,
 * and for a full buffer, and then leaves the buffer as it was.
 */
#ifndef DT_TEXT_H
#define DT_TEXT_H

#include <erl_nif.h>
#include <stdbool.h>

enum {
    /* Erlang's limit of 255 characters, each of at most four bytes (UTF-8, or an
       escape such as \205), and two quotes. */
    DT_ATOM_MAX = 255 * 4 + 2,

    /* #Ref<…> and six numbers of 64 bits. */
    DT_HANDLE_MAX = 6 + 6 * 21,

    /* The longest identifier is {Name,Node}, the longest location Module:Function/Arity:
       two atoms, and punctuation with a number. */
    DT_ID_MAX = 2 * DT_ATOM_MAX + 24,

    /* Free terms are cut here, the mark of the cut included. */
    DT_TERM_MAX = 256,

    /* Strings that a program passes are cut here. */
    DT_STRING_MAX = 1024,

    /* A trace event has at most two identifiers of any length and three free terms; the rest are
       pids and ports. A term is written in pieces, none longer than an identifier, and the last
       piece may go past the cut. An annotation has five strings and a pid. */
    DT_TRACE_TEXTS = 3 * (DT_ID_MAX + 1) + 5 * (DT_TERM_MAX + 1),
    DT_ANNOTATION_TEXTS = 5 * (DT_STRING_MAX + 1) + DT_HANDLE_MAX + 1,
    DT_TEXT_SIZE = DT_TRACE_TEXTS > DT_ANNOTATION_TEXTS ? DT_TRACE_TEXTS : DT_ANNOTATION_TEXTS,
};

struct dt_text {
    char *next;
    char buffer[DT_TEXT_SIZE];
};

static inline void dt_text_open(struct dt_text *text) {
    text->next = text->buffer;
}

/* The words that Erlang quotes when they are atoms, as a list: they differ from
   release to release, so Erlang gives them when it loads the library. */
bool dt_text_reserve(ErlNifEnv *env, ERL_NIF_TERM words);

/* A pid, port, reference, atom or {Name,Node}, whole, as Erlang writes it. */
const char *dt_text_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id);

/* More arguments than a function can have: a process may be spawned with that many, and then
   does not start. */
enum { DT_ARITY_MORE = 256 };

/* module:function/arity, whole, as Erlang writes it; DT_ARITY_MORE is written "...". */
const char *dt_text_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                        ERL_NIF_TERM function, unsigned long arity);

/*
 * Any term, as the %T of enif_snprintf writes it, in time that depends on the text alone. A text
 * that is longer than DT_TERM_MAX bytes is cut at a character boundary and ends in "...". Where it
 * differs from %T:
 *
 *   - Characters past ASCII of strings are UTF-8.
 *   - A map of more than 32 keys is #{Key=>Value,...} too, in an order of its own.
 *   - A list or binary is a string if all of it is printable that the text has room for.
 *   - A term of a kind that erl_nif has no getter for is <term>. Native records are read
 *     without one (dt_record.h).
 *   - The text ends before an integer of more digits than it has room for.
 *   - After a large unaligned binary, the text ends before the next binary: the runtime copies an
 *     unaligned binary whole (dt_binary.h), the only step here whose time depends on the term's
 * size.
 */
const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

/* Once, while the library is loaded: measures what dt_text_term needs of this runtime. Integers
   between the two have at most DT_TERM_MAX digits. False: bad arguments, or out of memory. */
bool dt_text_calibrate(ErlNifEnv *env, ERL_NIF_TERM least, ERL_NIF_TERM greatest);

/*
 * Sets whether texts show the structure of terms instead of their contents: tuples and atoms as
 * they are, other terms by type and size, as in
 * {reply,reference(),{binary,17},{list,3},{map,2},integer()}. Lists are counted to 1,000:
 * {list,1000...}. A native record is shown with its name and the names of its module and fields:
 * #shop:order{id=integer(),customer={binary,6}}.
 */
void dt_text_show_shapes(bool show);

/* A string that a program passes: iodata, in which integers past 255 are characters as in
   unicode:chardata(). Bytes that are not UTF-8 are taken for Latin-1, NUL becomes U+FFFD. A text
   that is longer than DT_STRING_MAX bytes is cut as a term is. The walk is bounded: a string that
   nests deeper than 256 lists, or has more than 8,192 list cells, is cut there. */
const char *dt_text_string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM string);

/* The same, or an atom's characters. */
const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name);

#endif
