/*
 * Messages between nodes whose clocks differ: a delivery that is recorded before its send. It waits
 * for that, and is told with it, at the time of the send.
 */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_EARLY_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_EARLY_H

#include "model/parts/messages/message.h"
#include "model/parts/messages/receiver.h"

/* A delivery from another node, of a message that is not in flight. */
void dt_early_add(struct node *node, const struct delivery *d);
/* Whether what is sent now was delivered before, by the receiver's clock: then it is told as sent.
 */
bool dt_early_sent(struct node *node, struct process *from, const struct receiver *receiver,
                   const struct dt_message_send *event);
/* The one that was sent last has this label, unless it has one. */
void dt_early_label(struct node *node, const char *label);
/* Tells that one as delivered: its seq_trace_send can't label it any more. */
void dt_early_told(struct node *node);
/* Those whose send did not come. */
void dt_early_late(struct node *node, int64_t now);

void dt_early_new(struct node *node);
void dt_early_free(struct node *node);

#endif
