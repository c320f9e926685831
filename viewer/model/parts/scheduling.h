/* The states of processes. */
#pragma once

#include "model/entities/process.h"

void dt_scheduling_event(struct node *node, const struct dt_recorded *event);
/* The function in which it last started running, "" if unknown. */
const char *dt_started_in(const struct process *process);
/* The function in which it last stopped running, "" if unknown. */
const char *dt_stopped_in(const struct process *process);
/* The time in ns that it has waited for a scheduler so far. */
int64_t dt_runnable_ns(const struct process *process);
/* If it runs because of a message whose copy took long: when that was sent, and when it arrived.
   Else DT_NO_VALUE. */
int64_t dt_copy_began(const struct process *process);
int64_t dt_copy_ended(const struct process *process);

void dt_scheduling_new(struct node *node);
void dt_scheduling_free(struct node *node);
void dt_scheduling_lost(struct node *node, int64_t begin);
void dt_scheduling_process(struct process *process);
/* Removes it from its scheduler. */
void dt_scheduling_leave(struct process *process);
void dt_scheduling_cut(struct process *process);
void dt_scheduling_exited(struct process *process, const char *reason);
void dt_scheduling_arrived(struct process *process);
void dt_scheduling_sent(struct node *node, struct process *from, struct process *to,
                        const char *text);
