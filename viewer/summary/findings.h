/* Findings: what a user should look at first, one sentence each. docs/findings.md has the rules. */
#pragma once

#include "summary/summary.h"

struct dt_rule {
    const char *name;
    const char *about; /* key of the report table that shows more */
    const char *next;  /* what to do */
};
extern const struct dt_rule dt_rules[];

extern const char *const dt_severity_names[DT_SEVERITIES];

/* Call it after dt_summary_end. */
void dt_summary_find(struct dt_summary *summary);
