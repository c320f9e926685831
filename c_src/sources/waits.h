/*
 * Which timeouts end a wait.
 *
 * The VM tells the end of each `receive … after` alike, also of `after 0`, which polls the mailbox
 * and does not wait. A process that waits does not run; when its time is over it is taken up, and
 * goes on with the timeout. So a timeout after another one, or after a message that the process has
 * sent meanwhile, ends no wait. What it has received since then tells nothing: where a signal has
 * come, too, the VM handles both before the process goes on.
 *
 * What a thread has taken up, and whether that has run since, is noted per thread: of the
 * application's tracer alone, which gets each event once.
 */
#ifndef DT_SOURCES_WAITS_H
#define DT_SOURCES_WAITS_H

#include "sources/decode.h"

/* The events of the groups running_procs, receive and send, before they are decoded. */
void dt_waits_note_running_procs(const struct dt_traced *trace);
void dt_waits_note_receive(const struct dt_traced *trace);
void dt_waits_note_send(const struct dt_traced *trace);

/* Whether the event of 'receive' that was noted last, and comes from clock_service, is a timeout
   that ends no wait. False where that is not known. A timer whose message is the atom `timeout`
   looks the same. */
bool dt_waits_is_poll(void);

#endif
