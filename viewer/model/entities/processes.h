/* The processes and ports of a node, by their identifiers. */
#pragma once

#include "model/entities/identity.h"

void dt_processes_new(struct node *node);
void dt_processes_free(struct node *node);

/* The process or port of an identifier, which is created if it does not exist. NULL if the text is
   not an identifier, or is the placeholder pid. */
struct process *dt_process_of(struct node *node, const char *identifier);
/* The same, but an identifier of another recorded node yields the process of that node. */
struct process *dt_process_anywhere(struct node *node, const char *identifier);
/* A process or port that was spawned or opened now; NULL as above. */
struct process *dt_process_create(struct node *node, const char *identifier,
                                  const struct identity *identity);
/* A new process with the identifier of one that has exited. */
struct process *dt_process_again(struct process *process);

void dt_process_ref(struct process *process);
void dt_process_unref(struct process *process);

/* Retires a process that has exited: only late events may still refer to it. */
void dt_process_retire(struct process *process);
/* Releases the oldest processes that have exited or are of other nodes. To be called only between
   events, because a handler may hold any of them. */
void dt_processes_forget(struct node *node);
/* Ends all processes at the end of the recording. */
void dt_processes_end(struct node *node);
