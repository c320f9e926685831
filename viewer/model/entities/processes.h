/* The processes and ports of a node, by their identifiers. */
#ifndef DT_VIEWER_MODEL_ENTITIES_PROCESSES_H
#define DT_VIEWER_MODEL_ENTITIES_PROCESSES_H

#include "model/entities/identity.h"

void dt_processes_new(struct node *node);
void dt_processes_free(struct node *node);

/* The process or port of an identifier, which becomes known by this if it was not. NULL if the
   text is none, or nobody's. */
struct process *dt_process_of(struct node *node, const char *identifier);
/* The same; one of another recorded node is that node's process. */
struct process *dt_process_anywhere(struct node *node, const char *identifier);
/* One that was spawned or opened now; NULL. */
struct process *dt_process_born(struct node *node, const char *identifier,
                                const struct identity *identity);
/* Another one that has its identifier, since it has exited. */
struct process *dt_process_again(struct process *process);

void dt_process_ref(struct process *process);
void dt_process_unref(struct process *process);

/* It has exited: nothing is told of it but what comes late. */
void dt_process_bury(struct process *process);
/* Releases the oldest that have exited or are of other nodes. Between events: a handler may hold
   any of them. */
void dt_processes_forget(struct node *node);
/* The recording ends for all of them. */
void dt_processes_end(struct node *node);

#endif
