/* The summary as text. */
#ifndef DT_VIEWER_REPORT_TEXT_H
#define DT_VIEWER_REPORT_TEXT_H

#include "summary/summary.h"

/* For a terminal, with at most `top` rows per table. */
void dt_report_text(const struct dt_summary *summary, unsigned top, GString *to);

#endif
