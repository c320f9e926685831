/*
 * The model: reconstructs the state of each recorded node from its events, in one pass.
 *
 *     recorded events -> model -> sinks
 *
 * shared/model_events.h describes the events that it reports, shared/sink.h the interface of a
 * sink.
 */
#pragma once

#include "shared/sink.h"

struct dt_model;
struct dt_reads;

/* What the command knows in addition to the recording, as texts of lines: how nodes ended, and what
   processes did at the end (summary/process_stacks.h). */
struct dt_command_notes {
    const char *ended, *stacks;
};

/* `sink`, and its data `of_sink`, must outlive the model. `shows_contents`: report exit reasons and
   log lines unchanged, instead of hiding their contents (shared/contents.h). */
struct dt_model *dt_model_new(const struct dt_sink *sink, void *of_sink, bool shows_contents,
                              struct dt_command_notes notes);
/* The callbacks of the reader that pass its events to the model. */
extern const struct dt_reads dt_model_reads;
/* Reports everything that is still open, then every live process as gone, then the nodes. */
void dt_model_end(struct dt_model *model);
void dt_model_free(struct dt_model *model);

/* After the end: whether there were processes from before the recording, none of which has a name
 * or an initial call. */
bool dt_model_is_nameless(const struct dt_model *model);
uint64_t dt_model_events(const struct dt_model *model);
/* The number of events of other providers, or whose fields could not be read. */
uint64_t dt_model_skipped(const struct dt_model *model);
/* As passed to dt_model_new. */
struct dt_command_notes dt_model_notes(const struct dt_model *model);
