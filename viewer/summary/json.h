/* The summary as JSON. */
#ifndef DT_VIEWER_SUMMARY_JSON_H
#define DT_VIEWER_SUMMARY_JSON_H

#include "summary/summary.h"

/* One object, after dt_summary_find: docs/report.md describes it. */
void dt_summary_json(const struct dt_summary *summary, GString *to);

#endif
