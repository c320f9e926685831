/*
 * The page's timeline: the most interesting processes with their intervals, messages, calls of
 * servers, spans, marks and exits, in memory that is bounded by what lives and by the limits below.
 *
 * Every function of dt_timeline_collects takes a struct dt_timeline.
 */
#ifndef DT_VIEWER_HTML_TIMELINE_H
#define DT_VIEWER_HTML_TIMELINE_H

#include "viewer/report.h"

struct dt_timeline_limits {
    unsigned processes, intervals, messages;
};

struct dt_timeline;

/* Processes are found by the report: tell it of them, too, and of `process_gone` after the
 * timeline.
 */
struct dt_timeline *dt_timeline_new(struct dt_report *report, struct dt_timeline_limits limits);
void dt_timeline_free(struct dt_timeline *timeline);

/* The functions that collect; those that it does not need are NULL. */
extern const struct dt_sink dt_timeline_collects;

/* After the model's end: a JSON object, which viewer/page/data.js reads. */
void dt_timeline_json(struct dt_timeline *timeline, GString *to);

#endif
