/* The states of processes. */
#pragma once

#include "model/entities/process.h"

void dt_scheduling_event(struct node *node, const struct dt_recorded *event);
/* The function in which it last started running, "" if unknown. */
const char *dt_started_in(const struct process *process);
/* The function in which it last stopped running, "" if unknown. */
const char *dt_stopped_in(const struct process *process);

void dt_scheduling_new(struct node *node);
void dt_scheduling_free(struct node *node);
void dt_scheduling_lost(struct node *node, int64_t begin);
void dt_scheduling_process(struct process *process);
/* Removes it from its scheduler. */
void dt_scheduling_leave(struct process *process);
void dt_scheduling_cut(struct process *process);
void dt_scheduling_exited(struct process *process, const char *reason);
void dt_scheduling_arrived(struct process *process);
