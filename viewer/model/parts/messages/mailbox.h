/*
 * Mailboxes. The VM does not report when a process takes a message out of its mailbox, so the
 * length is the number of messages that were sent to the process and are not delivered.
 */
#pragma once

#include "model/entities/process.h"

/* Changes the number of messages in flight to it by `by`. */
void dt_mailbox_changed(struct process *process, int by);
