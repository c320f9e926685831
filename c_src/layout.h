/*
 * The layout: where the VM's memory has the process that a thread runs, so that a program on the
 * host, which takes samples, reads it there. It depends on the release and on how it was built, and
 * nothing tells it. So it is looked for: a NIF knows the process that runs it, and what holds a
 * pointer to that process may be the place.
 *
 *     thread ─SLOT─> data of the scheduler ─CURRENT─> process: [ pid, ...,
 *                                                         FRAME: the innermost frame of its stack ]
 *
 * One thread and one process leave several candidates: dyntrace_layout asks several of both, and
 * believes only what holds for all.
 */
#ifndef DT_LAYOUT_H
#define DT_LAYOUT_H

#include "sources/nif.h"

/* {[{Slot, Current}], {Frame, [Address]}}: the candidates, in bytes; the place of the frame, and
   the addresses to which the frames return, from the innermost. Without frames, {0, []}.
   `undefined` where nothing can be known. */
dt_nif dt_layout_candidates;

/* A term: the word that it is. */
dt_nif dt_layout_word;

#endif
