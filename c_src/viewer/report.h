/*
 * The report: collects from what the model tells what a recording says, in bounded memory.
 *
 *     model -> collector (report.c) -> findings -> text or JSON
 *
 * A sink has a report as its data, or hands on what it gets: every function of
 * dt_report_collects takes a struct dt_report.
 */
#ifndef DT_VIEWER_REPORT_H
#define DT_VIEWER_REPORT_H

#include "viewer/sink.h"

struct dt_report;

struct dt_report *dt_report_new(void);
void dt_report_free(struct dt_report *report);

/* The functions that collect; those that the report does not need are NULL. */
extern const struct dt_sink dt_report_collects;

/* After the model's end, and before the two below. */
void dt_report_finish(struct dt_report *report, const struct dt_model *model);

/* One JSON object: docs/report.md describes it. */
void dt_report_json(const struct dt_report *report, GString *to);

/* For a terminal, with at most `top` rows per table. */
void dt_report_text(const struct dt_report *report, unsigned top, GString *to);

#endif
