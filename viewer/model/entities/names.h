/* Registered names. */
#ifndef DT_VIEWER_MODEL_ENTITIES_NAMES_H
#define DT_VIEWER_MODEL_ENTITIES_NAMES_H

#include "model/entities/process.h"

void dt_registered_new(struct node *node);
void dt_registered_free(struct node *node);

/* A process has one name, a name one process: what a trace says besides is a loss. */
void dt_name_give(struct process *p, const char *name);
/* The same, as a registration tells it: the name is somebody's. */
void dt_name_register(struct process *p, const char *name);
/* It has its name no more. */
void dt_name_drop(struct process *p);
/* Nobody has this name any more. */
void dt_name_unregister(struct node *node, const char *name);

/* Who has it; NULL. */
struct process *dt_process_named(struct node *node, const char *name);
/* Whether it is known that nobody has it. */
bool dt_name_is_nobodys(const struct node *node, const char *name);

#endif
