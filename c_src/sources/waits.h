/*
 * Detects timeouts that do not end a wait.
 *
 * The VM traces the end of every `receive … after` in the same way, including that of `after 0`,
 * which polls the mailbox and does not wait. A waiting process does not run; after the timeout it
 * is scheduled in, and continues with the timeout. So a timeout that follows another one, or a
 * message sent by the process, in the same time slice does not end a wait. Received messages prove
 * nothing: if a signal has also arrived, the VM handles both before the process continues.
 *
 * Each thread records the process that it has scheduled in, and whether that has run meanwhile.
 * Only events of the application's tracer are used, which gets each event once.
 */
#ifndef DT_SOURCES_WAITS_H
#define DT_SOURCES_WAITS_H

#include "sources/decode.h"

/* The events of the groups running_procs, receive and send, before they are decoded. */
void dt_waits_note_running_procs(const struct dt_traced *trace);
void dt_waits_note_receive(const struct dt_traced *trace);
void dt_waits_note_send(const struct dt_traced *trace);

/* Whether this event of 'receive', which comes from clock_service, is a timeout that does not end a
   wait. False if that is unknown. A timer whose message is the atom `timeout` looks the same. */
bool dt_waits_is_poll(const struct dt_traced *trace);

#endif
