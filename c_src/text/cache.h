/*
 * Cached texts: those of atoms, and of this node's pids and ports, which come again and again.
 *
 * No cached text is ever stale. Such a term is one word, which is its whole identity: the VM never
 * uses an atom's number again, and what %T writes of a local pid or port are bits of the word
 * itself. Whether a process lives, or the node gets another name, does not change them. Terms that
 * point to a heap are never cached.
 *
 * Each thread has a table of its own, so there is no lock. Its size is fixed: a new text replaces
 * the one that has its place.
 */
#ifndef DT_TEXT_CACHE_H
#define DT_TEXT_CACHE_H

#include "text/text.h"

/* An atom is spelled differently in the two. */
enum dt_spelling { DT_AS_ERLANG, DT_AS_RUNTIME };

/* Appends the text if it is cached and there is room for it. Takes any term. */
bool dt_cache_put(struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term);

/* Caches what was appended since `start`, as the text of an atom, or of a local pid or port. */
void dt_cache_store(const struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term,
                    const char *start);

#endif
