/*
 * Messages between nodes whose clocks differ, so that the delivery is recorded before the send. The
 * delivery waits for the send, and is reported with it, at the time of the send.
 */
#pragma once

#include "model/parts/messages/message.h"
#include "model/parts/messages/receiver.h"

/* Adds the delivery of a message from another node that is not in flight. */
void dt_early_add(struct node *node, const struct delivery *d);
/* If the delivery of this message is waiting for its send, reports the message as sent and returns
   true. */
bool dt_early_sent(struct node *node, struct process *from, const struct receiver *receiver,
                   const struct dt_message_send *event);
/* Sets the label of the message that was reported last, unless it has one. */
void dt_early_label(struct node *node, const char *label);
/* Reports that message as delivered: its seq_trace_send can no longer follow. */
void dt_early_emit(struct node *node);
/* Reports deliveries that have waited too long as unmatched. */
void dt_early_late(struct node *node, int64_t now);
/* Reports everything: neither sends nor deliveries follow. */
void dt_early_end(struct node *node);

void dt_early_new(struct node *node);
void dt_early_free(struct node *node);
