/*
 * Texts that were made before: those of atoms, and of this node's pids and ports, which
 * come again and again.
 *
 * No text of these is ever stale. Such a term is one word, which is its whole identity:
 * the VM keeps an atom's number for good, and what %T writes of a local pid or port are
 * bits of the word itself. Whether a process lives, or the node gets another name, does
 * not change them. Terms that point to a heap never come here.
 *
 * Each thread has a table of its own, so there is no lock. It is of a fixed size: what comes to an
 * entry that is taken replaces it.
 */
#ifndef DT_KNOWN_H
#define DT_KNOWN_H

#include "dt_text.h"

/* Of an atom, the two are different. */
enum dt_spelling { DT_AS_ERLANG, DT_AS_RUNTIME };

/* Appends the text, if it is known and there is room for it. Any term may be asked for. */
bool dt_known_put(struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term);

/* Keeps what was appended since `start`, as the text of an atom, or of a local pid or port. */
void dt_known_keep(const struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term,
                   const char *start);

#endif
