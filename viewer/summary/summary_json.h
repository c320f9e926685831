/* The summary as JSON. */
#pragma once

#include "summary/summary.h"

/* Writes one object, which docs/report.md describes. Call it after dt_summary_find. */
void dt_summary_json(const struct dt_summary *summary, GString *to);
