/* Aggregates the samples of each process. */
#ifndef DT_VIEWER_SUMMARY_SAMPLES_H
#define DT_VIEWER_SUMMARY_SAMPLES_H

#include <stdint.h>

struct dt_process;
struct dt_process_sample;

void dt_summary_sample(void *s, struct dt_process *process, const struct dt_process_sample *sample,
                       int64_t time);

#endif
