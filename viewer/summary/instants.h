/* What a summary takes from instants: log lines, what the VM tells of itself, marks, output. */
#ifndef DT_VIEWER_SUMMARY_INSTANTS_H
#define DT_VIEWER_SUMMARY_INSTANTS_H

#include "shared/told.h"

/* Of a sink whose data is a summary. */
void dt_summary_instant(void *s, const struct dt_instant *i);

#endif
