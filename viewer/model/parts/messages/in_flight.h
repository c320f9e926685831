/*
 * Messages in flight. Each is in the list of its receiver, if that is known, and in the node's list
 * by age. If there are too many, the oldest are dropped.
 *
 * A message to another recorded node belongs to that node, because its delivery is recorded there.
 * A delivery does not name a sender in another node, so such a message is found by its text. If it
 * has a token, the delivery is noted, but reported only when seq_trace_receive identifies the
 * message.
 */
#pragma once

#include "model/parts/messages/message_list.h"

/* The messages in flight to this process. */
struct list *dt_in_flight_to(struct process *process);
/* The messages in flight to names and aliases of the node whose process is unknown. */
struct list *dt_in_flight_unaddressed(const struct node *node);
/* The message that was added last. */
struct message *dt_in_flight_youngest(const struct node *node);

/* Adds `by` to the length of the process's mailbox. The VM does not report when a process takes a
   message out of its mailbox, so this is the number of messages that were sent to it and not yet
   delivered. */
void dt_mailbox_changed(struct process *process, int by);

void dt_in_flight_add(struct message *m);
void dt_in_flight_take_out(struct message *m);
/* It has reached the receiver; seq_trace_receive will identify the message. */
void dt_in_flight_arrive(struct message *m, const struct delivery *d);
/* Removes a message from flight: as delivered if it has arrived, or if its receiver ran without its
   seq_trace_receive; else as unmatched. */
void dt_in_flight_drop(struct message *m);
void dt_in_flight_drop_all(struct node *node);
/* Makes room for one more message. */
void dt_in_flight_make_room(struct node *node);

/* Notes that the node has had a delivery, which raises the limit of messages in flight. */
void dt_in_flight_delivered(struct node *node);

void dt_in_flight_new(struct node *node);
void dt_in_flight_free(struct node *node);
