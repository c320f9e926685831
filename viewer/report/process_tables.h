/* The report's tables of processes, one per sort criterion. */
#pragma once

#include "summary/summary.h"

void dt_report_processes(GString *to, const struct dt_summary *summary, unsigned top);
