/* Links between processes and ports. */
#ifndef DT_VIEWER_MODEL_ENTITIES_LINKS_H
#define DT_VIEWER_MODEL_ENTITIES_LINKS_H

#include "model/entities/process.h"

void dt_link(struct process *p, struct process *other);
void dt_unlink(struct process *p, struct process *other);
void dt_unlink_all(struct process *p);
/* Those that it is linked to, by their numbers; to be freed by g_free. NULL if there are none. */
struct dt_process **dt_linked(const struct process *p, unsigned *count);

/* Of pointers to processes, as the model or as sinks see them. */
int dt_by_number(const void *a, const void *b);

#endif
