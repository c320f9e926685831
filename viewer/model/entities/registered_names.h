/* Registered names. Those of Elixir are in its spelling (shared/elixir.h), as in a dump. */
#pragma once

#include "model/entities/process.h"

void dt_registered_new(struct node *node);
void dt_registered_free(struct node *node);

/* A process has at most one name, and a name at most one process. If a trace contradicts that,
   events were lost, and the new assignment replaces the old one. */
void dt_name_give(struct process *p, const char *name);
/* The same for a recorded registration: the name is no longer known to be free. */
void dt_name_register(struct process *p, const char *name);
/* Removes the name of a process. */
void dt_name_drop(struct process *p);
/* Removes a name, which is then known to be free. */
void dt_name_unregister(struct node *node, const char *name);

/* Events were lost: no name is known to be free. */
void dt_names_lost(struct node *node, int64_t begin);

/* The process with this name; NULL if unknown. */
struct process *dt_process_named(struct node *node, const char *name);
/* Whether the name is known to be free. */
bool dt_name_is_free(const struct node *node, const char *name);
