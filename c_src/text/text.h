/*
 * Text: converts Erlang terms to NUL-terminated UTF-8.
 *
 *     struct dt_text text;               on the stack of the callback
 *     dt_text_open(&text);
 *     e->pid = dt_text_id(&text, env, pid);
 *     e->reason = dt_text_term(&text, env, reason);
 *
 *     buffer  [ <0.131.0>\0 {shutdown,...}\0                  free ]
 *               ^e->pid     ^e->reason     ^next              ^end
 *
 * All texts of one event are stored one after the other in one buffer on the callback's stack, so
 * they are never allocated or freed. Every function that makes text (id.h, term.h, string.h)
 * returns NULL, and leaves the buffer unchanged, for a term that it does not accept and if the
 * buffer is full.
 */
#ifndef DT_TEXT_TEXT_H
#define DT_TEXT_TEXT_H

#include <erl_nif.h>
#include <stdbool.h>

#include "catalogue/event.h"
#include "text/cache.h"

enum {
    /* Erlang's limit of 255 characters, each of at most four bytes (UTF-8, or an
       escape such as \205), and two quotes. */
    DT_ATOM_MAX = 255 * 4 + 2,

    /* The longest identifier is {Name,Node}, the longest location Module:Function/Arity:
       two atoms, and punctuation with a number. */
    DT_ID_MAX = 2 * DT_ATOM_MAX + 24,

    /* A term or string is written in pieces, none longer than an identifier, and the last piece may
       go past the cut. */
    DT_PIECE_MAX = DT_ID_MAX,

    /* Five identifiers and a term. put.c checks that the texts of each probe fit. */
    DT_TEXT_SIZE = 5 * (DT_ID_MAX + 1) + DT_TERM_MAX + 1 + DT_PIECE_MAX,
};

struct dt_text {
    char *next;
    struct dt_cache *cache; /* this thread's: looked up once per event, because that takes calls */
    char buffer[DT_TEXT_SIZE];
};

static inline void dt_text_open(struct dt_text *text) {
    text->next = text->buffer;
    text->cache = dt_cache();
}

#endif
