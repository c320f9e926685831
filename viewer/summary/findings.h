/* Findings: what a person should look at first, in a sentence each. */
#ifndef DT_VIEWER_SUMMARY_FINDINGS_H
#define DT_VIEWER_SUMMARY_FINDINGS_H

#include "summary/summary.h"

extern const char *const dt_severity_names[DT_SEVERITIES];

/* After dt_summary_end. */
void dt_summary_find(struct dt_summary *summary);

#endif
