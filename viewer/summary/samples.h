/* Aggregates the samples of each process. */
#pragma once

#include <stdint.h>

struct dt_process;
struct dt_process_sample;

void dt_summary_sample(void *data, struct dt_process *process,
                       const struct dt_process_sample *sample, int64_t time);
