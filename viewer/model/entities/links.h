/* Links between processes and ports. */
#pragma once

#include "model/entities/process.h"

void dt_link(struct process *p, struct process *other);
void dt_unlink(struct process *p, struct process *other);
void dt_unlink_all(struct process *p);
/* The processes and ports linked to it, sorted by number; to be freed by g_free. NULL if there are
   no links. */
struct dt_process **dt_linked(const struct process *p, unsigned *count);

/* Compares pointers to struct process or struct dt_process. */
int dt_by_number(const void *a, const void *b);
