/*
 * The page's timeline: the most interesting processes with their intervals, messages, server calls,
 * spans, marks and exits. The number of live processes and the limits below bound its memory.
 *
 * Every callback of dt_page_timeline_collector takes a struct dt_page_timeline.
 */
#pragma once

#include "page/lanes.h"
#include "page/message_chunks.h"
#include "page/items.h"
#include "page/strings.h"
#include "shared/sink.h"

struct dt_page_timeline_limits {
    unsigned processes, intervals, messages;
};

struct dt_page_timeline {
    struct dt_page_lanes *lanes;
    struct dt_page_strings *functions;
    struct dt_page_messages *messages;
    struct dt_page_items calls, spans, marks, exits;
    GArray *lost; /* of struct dt_lost, without its texts */
    unsigned rows_most;
    int64_t begin, end;
};

/* `actors` has to outlive the result. Pass `process_gone` to the timeline before dt_actor_gone. */
struct dt_page_timeline *dt_page_timeline_new(struct dt_actors *actors,
                                              struct dt_page_timeline_limits limits);
void dt_page_timeline_free(struct dt_page_timeline *timeline);

/* The callbacks that collect; the ones that it does not need are NULL. */
extern const struct dt_sink dt_page_timeline_collector;

/* Writes the timeline as one JSON object, which browser/data.js reads. Call it after the end of the
   model. */
void dt_page_timeline_json(struct dt_page_timeline *timeline, GString *to);
