/* Distinguishes crashes from orderly exits of processes and ports. */
#ifndef DT_VIEWER_MODEL_ENTITIES_ENDS_H
#define DT_VIEWER_MODEL_ENTITIES_ENDS_H

#include "model/entities/process.h"

/* Orderly exits are those of the table orderly_exits.tsv, which the host command reads, too. */
bool dt_is_crash(const struct process *p, const char *reason);

#endif
