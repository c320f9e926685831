/* Tasks of Elixir. */
#pragma once

#include "model/entities/process.h"

/* The first message to an awaited task has its function and comes from the process that waits for
   it: the task gets its function as initial call, and a label with both. Other tasks get such a
   label from the reply of their supervisor. */
void dt_tasks_sent(struct node *node, struct process *from, struct process *to, const char *text);
