/* The report's tables of processes, one per sort criterion. */
#ifndef DT_VIEWER_REPORT_PROCESSES_H
#define DT_VIEWER_REPORT_PROCESSES_H

#include "summary/summary.h"

void dt_report_processes(GString *to, const struct dt_summary *summary, unsigned top);

#endif
