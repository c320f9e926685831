/* Spans of dyntrace:span/2. */
#pragma once

#include "model/entities/nodes.h"

void dt_spans_event(struct node *node, const struct dt_recorded *event);

void dt_spans_new(struct node *node);
void dt_spans_free(struct node *node);
void dt_spans_cut(struct process *process);
void dt_spans_exited(struct process *process, const char *reason);
void dt_spans_end(struct node *node);
