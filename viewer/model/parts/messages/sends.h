/* Sends: message_send and seq_trace_send, which may be events of the same message. */
#pragma once

#include "model/entities/nodes.h"

void dt_message_send(struct node *node, const struct dt_recorded *event);
void dt_seq_trace_send(struct node *node, const struct dt_recorded *event);

void dt_sends_new(struct node *node);
void dt_sends_free(struct node *node);
void dt_sends_late(struct node *node, int64_t now);
