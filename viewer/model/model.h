/*
 * The model: the state of each recorded node, rebuilt from its events in one pass.
 *
 *     recorded events -> model -> sinks
 *
 * What it tells: shared/told.h. Whom it tells: shared/sink.h.
 */
#ifndef DT_VIEWER_MODEL_MODEL_H
#define DT_VIEWER_MODEL_MODEL_H

#include "shared/sink.h"

struct dt_model;

/* `sink` and its data, which all of its functions get, live longer than the model.
   `shows_contents`: of exit reasons and log lines; else shared/contents.h. */
struct dt_model *dt_model_new(const struct dt_sink *sink, void *of_sink, bool shows_contents);
void dt_model_event(struct dt_model *model, const struct dt_recorded *event);
/* Counts an event of another provider, or one whose fields could not be read. */
void dt_model_skip(struct dt_model *model);
/* A loss has begun whose end is not known yet: what is known ends there. */
void dt_model_losing(struct dt_model *model, const char *hostname, int64_t vpid, uint64_t trace,
                     int64_t begin);
/* Events of this place may be lost until `end`: before, nothing is inferred from an event that is
   missing. */
void dt_model_unsure(struct dt_model *model, const char *hostname, int64_t vpid, uint64_t trace,
                     int64_t end);
/* A loss whose end is known: what seemed to be known while it lasted was not. */
void dt_model_lost(struct dt_model *model, const char *hostname, int64_t vpid, uint64_t trace,
                   const struct dt_lost *lost);
/* Tells what is open, then every live process as gone, then the nodes' end. */
void dt_model_end(struct dt_model *model);
void dt_model_free(struct dt_model *model);

/* At the end: processes were there before the recording, and none of them has a name or an initial
 * call. */
bool dt_model_is_nameless(const struct dt_model *model);
uint64_t dt_model_events(const struct dt_model *model);
/* Events of other providers, and of ours whose fields could not be read. */
uint64_t dt_model_skipped(const struct dt_model *model);

#endif
