/* Calls and returns of functions. */
#pragma once

#include "model/entities/process.h"

void dt_calls_event(struct node *node, const struct dt_recorded *event);

void dt_calls_new(struct node *node);
void dt_calls_free(struct node *node);
void dt_calls_lost(struct node *node, int64_t begin);
void dt_calls_cut(struct process *process);
void dt_calls_exited(struct process *process, const char *reason);
void dt_calls_scheduled(struct process *process, bool runs);
