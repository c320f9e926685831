/* Collects a summary from the events of the model. */
#pragma once

#include "shared/sink.h"
#include "summary/summary.h"

/* The functions that collect. Their data has to be the summary. */
extern const struct dt_sink dt_summary_collector;
/* Some of them. */
void dt_summary_instant(void *data, const struct dt_instant *i);
void dt_summary_sample(void *data, struct dt_process *process,
                       const struct dt_process_sample *sample, int64_t time);
void dt_summary_wait(void *data, struct dt_process *process, struct dt_process *target,
                     const struct dt_process_wait *wait, int64_t time);

/* Call it after the end of the model. */
void dt_summary_end(struct dt_summary *summary, const struct dt_model *model);
