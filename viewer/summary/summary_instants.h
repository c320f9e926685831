/* Instants in a summary: log lines, reports of the system monitor, marks, output. */
#pragma once

#include "shared/model_events.h"

/* A callback of a sink whose data is a summary. */
void dt_summary_instant(void *data, const struct dt_instant *i);
