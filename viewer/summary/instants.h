/* Instants in a summary: log lines, reports of the system monitor, marks, output. */
#ifndef DT_VIEWER_SUMMARY_INSTANTS_H
#define DT_VIEWER_SUMMARY_INSTANTS_H

#include "shared/model_events.h"

/* A callback of a sink whose data is a summary. */
void dt_summary_instant(void *s, const struct dt_instant *i);

#endif
