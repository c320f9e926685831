/* The summary as text. */
#pragma once

#include "summary/summary.h"

/* For a terminal, with at most `top` rows per table. */
void dt_report_text(const struct dt_summary *summary, unsigned top, GString *to);

/* The tables of processes, one per sort criterion. */
void dt_report_processes(GString *to, const struct dt_summary *summary, unsigned top);
