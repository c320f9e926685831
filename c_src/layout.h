/*
 * The layout: where the current process of a thread is in the VM's memory, so that a sampling
 * program on the host can read it. It depends on the release and on how it was built, and is not
 * documented. So it is searched for: a NIF knows the process that runs it, and each pointer to that
 * process is a candidate.
 *
 *     thread ─SLOT─> data of the scheduler ─CURRENT─> process: [ pid, ...,
 *                                                         FRAME: the innermost frame of its stack ]
 *
 * One thread and one process leave several candidates: dyntrace_layout asks several of both, and
 * accepts only a result that is valid for all.
 */
#ifndef DT_LAYOUT_H
#define DT_LAYOUT_H

#include "sources/nif.h"

/* {[{Slot, Current}], {Frame, [Address]}}: the candidates, in bytes; the offset of the frame, and
   the return addresses of the frames, innermost first. Without frames, {0, []}. `undefined` on
   unsupported platforms. */
dt_nif dt_layout_candidates;

/* A term: returns its machine word. */
dt_nif dt_layout_word;

#endif
