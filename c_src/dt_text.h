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
 * All texts of one event stand one after the other in one buffer that is gone
 * with the callback: nothing is allocated and nothing is freed. Every function
 * answers NULL for a term that it does not take, and for a full buffer, and then
 * leaves the buffer as it was.
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

    /* And what a program wrote itself here. */
    DT_STRING_MAX = 1024,

    /* No trace event has more than two identifiers of any length and three free terms; the
       rest are pids and ports. What a term is written in are pieces of an identifier's length or
       less, and the last one may go past the cut. An annotation has five strings and a pid. */
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
 * Any term, as the %T of enif_snprintf writes it, in time that depends on the text alone. What
 * is longer than DT_TERM_MAX bytes is cut at a character boundary and ends in "...": it is a
 * beginning of %T's text. Where the two differ:
 *
 *   - Characters past ASCII of strings are UTF-8.
 *   - A map of more than 32 keys is #{Key=>Value,...} too, in an order of its own.
 *   - A list or binary is a string if all of it is printable that the text has room for.
 *   - A term of a kind that erl_nif has no getter for is <term>. Native records are read
 *     without one (dt_record.h).
 *   - The text ends before an integer of more digits than it has room for.
 *   - Behind a large binary that starts in mid-byte it ends before the next binary: such a one the
 *     runtime copies whole (dt_binary.h), the one thing here that takes time by its size.
 */
const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

/* What dt_text_term needs to know of this runtime. Of two integers, all that lie between them
   have at most DT_TERM_MAX digits. */
bool dt_text_calibrate(ErlNifEnv *env, ERL_NIF_TERM least, ERL_NIF_TERM greatest);

/*
 * From now on the structure of terms, not their contents: tuples and atoms as they are, of all
 * else its type and size, as in {reply,reference(),{binary,17},{list,3},{map,2},integer()}.
 * A list is counted to 1,000: {list,1000...}. Of a native record the names of its module, of itself
 * and of its fields are shown: #shop:order{id=integer(),customer={binary,6}}.
 */
void dt_text_show_shapes(bool show);

/* What a program wrote: iodata, in which integers past 255 are characters as in
   unicode:chardata(). Bytes that are no UTF-8 are taken for Latin-1, NUL becomes U+FFFD.
   What is longer than DT_STRING_MAX bytes is cut as a term is, and so is what hides
   behind 256 lists in lists or 8,192 list cells: nothing of any size is walked. */
const char *dt_text_string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM string);

/* The same, or an atom's characters. */
const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name);

#endif
