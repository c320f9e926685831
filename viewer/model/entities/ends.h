/* Orderly ends of processes and ports, and crashes. */
#ifndef DT_VIEWER_MODEL_ENTITIES_ENDS_H
#define DT_VIEWER_MODEL_ENTITIES_ENDS_H

#include "model/entities/process.h"

/* Not for normal, shutdown, {shutdown, _}; killed by its supervisor's shutdown, which unlinks it
   first; and what OTP's own processes end with when all went well. */
bool dt_is_crash(const struct process *p, const char *reason);

#endif
