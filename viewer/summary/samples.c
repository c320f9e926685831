#include "summary/samples.h"

#include <string.h>

#include "summary/summary.h"

/* It does not run if no sample sees reductions; a process's first sample never does. The states of
   one that could run, or that runs, say that it is not stopped. */
static bool is_still(const struct dt_process_sample *sample) {
    return sample->queue > 0 && sample->reductions == 0 &&
           (strcmp(sample->state, "waiting") == 0 || strcmp(sample->state, "suspended") == 0);
}

static void note_still(struct dt_sampled *of, const struct dt_process_sample *sample,
                       int64_t time) {
    if (!is_still(sample)) {
        of->still_since = DT_NO_VALUE;
        return;
    }
    if (of->still_since == DT_NO_VALUE)
        of->still_since = time;
    if (time - of->still_since < of->longest_still)
        return;
    of->longest_still = time - of->still_since;
    of->still_queue = sample->queue;
    of->was_suspended = strcmp(sample->state, "suspended") == 0;
}

void dt_summary_sample(void *s, struct dt_process *process, const struct dt_process_sample *sample,
                       int64_t time) {
    struct dt_summary *summary = s;
    struct dt_who *who = dt_who_of(&summary->whos, process);
    dt_summary_at(summary, time);
    dt_summary_told(summary, who->node, DT_TOLD_SAMPLES);
    if (!who->sampled) {
        who->sampled = g_new0(struct dt_sampled, 1);
        *who->sampled = (struct dt_sampled){
            .first = time, .first_queue = sample->queue, .still_since = DT_NO_VALUE};
    }
    struct dt_sampled *of = who->sampled;
    of->rises += of->count > 0 && sample->queue > of->last_queue;
    of->count++;
    of->last = time;
    of->last_queue = sample->queue;
    of->max_queue = MAX(of->max_queue, sample->queue);
    of->max_memory = MAX(of->max_memory, sample->memory);
    note_still(of, sample, time);
}
