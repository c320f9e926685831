/* Messages, from `sent` to `delivered`. */
#pragma once

#include "model/entities/nodes.h"

void dt_messages_event(struct node *node, const struct dt_recorded *event);

void dt_messages_new(struct node *node);
void dt_messages_free(struct node *node);
/* Reports events that will no longer be completed by a second one. */
void dt_messages_late(struct node *node, int64_t now);
void dt_messages_lost(struct node *node, int64_t begin);
void dt_messages_end(struct node *node);
void dt_messages_scheduled(struct process *process, bool runs);
