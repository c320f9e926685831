/* Deliveries: message_receive, message_delivery and seq_trace_receive, which may be events of the
   same message. */
#pragma once

#include "model/entities/nodes.h"

void dt_message_receive(struct node *node, const struct dt_recorded *event);
void dt_message_delivery(struct node *node, const struct dt_recorded *event);
void dt_seq_trace_receive(struct node *node, const struct dt_recorded *event);

/* If deliveries are not recorded, delivers all messages in flight to it from its own node. A
   process is assumed to have received all earlier messages when it starts running, and when it
   stops to wait. A preempted process, which may not have received all of them, looks the same. */
void dt_deliveries_infer(struct process *to, bool runs);

void dt_deliveries_new(struct node *node);
void dt_deliveries_free(struct node *node);
