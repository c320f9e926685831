/*
 * Mailboxes. The VM does not tell when a process takes a message out of its mailbox, so its length
 * is the number of messages that were sent to it and are not delivered.
 */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_MAILBOX_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_MAILBOX_H

#include "model/entities/process.h"

/* So many more, or fewer, are in flight to it. */
void dt_mailbox_changed(struct process *process, int by);

#endif
