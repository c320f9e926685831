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

/* `sink`, and its data `of_sink`, must outlive the model. `shows_contents`: report exit reasons and
   log lines unchanged, instead of hiding their contents (shared/contents.h). */
struct dt_model *dt_model_new(const struct dt_sink *sink, void *of_sink, bool shows_contents);
void dt_model_event(struct dt_model *model, const struct dt_recorded *event);
/* Counts an event of another provider, or one whose fields could not be read. */
void dt_model_skip(struct dt_model *model);
/* A loss begins whose end is not yet known: the known state ends at `begin`. */
void dt_model_losing(struct dt_model *model, const struct dt_place *place, int64_t begin);
/* Events of this place may be lost up to `end`: until then, the model infers nothing from a missing
   event. */
void dt_model_unsure(struct dt_model *model, const struct dt_place *place, int64_t end);
/* A loss whose end is known: discards state that was inferred during the loss. */
void dt_model_lost(struct dt_model *model, const struct dt_place *place,
                   const struct dt_lost *lost);
/* Reports everything that is still open, then every live process as gone, then the nodes. */
void dt_model_end(struct dt_model *model);
void dt_model_free(struct dt_model *model);

/* After the end: whether there were processes from before the recording, none of which has a name
 * or an initial call. */
bool dt_model_is_nameless(const struct dt_model *model);
uint64_t dt_model_events(const struct dt_model *model);
/* The number of events passed to dt_model_skip. */
uint64_t dt_model_skipped(const struct dt_model *model);
