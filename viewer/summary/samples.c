/* Sums up the samples of each process. */
#include "summary/summary_events.h"

#include <string.h>

#include "shared/texts.h"
#include "summary/findings/limits.h"

/* A suspended process still moves sent messages into its queue. That takes one or two reductions,
   and another one per about 200 messages. Handling a message takes at least one each. When these
   messages fill the heap, a garbage collection takes one per ten words that it copies. */
enum { REDUCTIONS_TO_TAKE = 2, MESSAGES_PER_REDUCTION = 100, BYTES_PER_REDUCTION = 80 };

/* A process that waits for a certain message uses at most so many reductions for each other
   message, and for a request for its data. A message may arrive between the readings of its
   reductions and of its queue. */
enum { REDUCTIONS_TO_WAKE = 9, MESSAGES_BETWEEN = 1 };

/* Whether sends are recorded, but none by this process after its last sample. */
static bool sent_nothing(const struct dt_actor *actor) {
    return actor->node && dt_is_recorded(actor->node->recorded, DT_RECORDED_SENDS) &&
           actor->activity->sent == actor->activity->sampled->sent;
}

static bool is_suspended(const struct dt_actor *actor, const struct dt_process_sample *sample,
                         uint64_t queue_before) {
    uint64_t more = sample->queue > queue_before ? sample->queue - queue_before : 0;
    uint64_t to_collect = sent_nothing(actor) ? sample->memory / BYTES_PER_REDUCTION : 0;

    return strcmp(sample->state, "suspended") == 0 &&
           sample->reductions <= REDUCTIONS_TO_TAKE + more / MESSAGES_PER_REDUCTION + to_collect;
}

/* Whether the messages that it got only woke it. A process that handles some of them, as slowly as
   they come, uses as many reductions, but sends requests or replies. */
static bool is_only_woken(const struct dt_actor *actor, const struct dt_process_sample *sample,
                          uint64_t queue_before) {
    const struct dt_sampled *of = actor->activity->sampled;
    uint64_t more = MIN(sample->queue - queue_before, UINT32_MAX);
    uint64_t most = (1 + more + (more ? MESSAGES_BETWEEN : 0)) * REDUCTIONS_TO_WAKE;

    /* A process that computes collects garbage, too. This one does not compute. */
    if (g_str_has_prefix(sample->entry, "sys:suspend_loop/") &&
        actor->activity->collections > of->collections)
        most += sample->memory / BYTES_PER_REDUCTION;
    return sent_nothing(actor) && strcmp(of->last_in, sample->entry) == 0 &&
           sample->reductions <= most;
}

/* It tries again and again to get a lock. */
static bool waits_for_lock(const struct dt_process_sample *sample) {
    return g_str_has_prefix(sample->entry, "global:random_sleep/");
}

/* A process does not run if samples see no reductions; its first sample never sees any. One that is
   `running` in a function for files waits for the system. A process in a state other than these
   runs or is runnable, so it is not stopped. */
static bool is_still(const struct dt_actor *actor, const struct dt_process_sample *sample,
                     uint64_t queue_before) {
    if (sample->queue < queue_before)
        return false;
    if (strcmp(sample->state, "running") == 0)
        return sample->reductions == 0 && g_str_has_prefix(sample->entry, "prim_file:");
    if (strcmp(sample->state, "waiting") != 0)
        return is_suspended(actor, sample, queue_before);
    return sample->reductions == 0 || waits_for_lock(sample) ||
           is_only_woken(actor, sample, queue_before);
}

static void note_still(struct dt_actor *actor, const struct dt_process_sample *sample,
                       uint64_t queue_before, int64_t time) {
    struct dt_sampled *of = actor->activity->sampled;
    bool suspended = strcmp(sample->state, "suspended") == 0;
    /* An idle process waits for its first message. */
    bool is_new =
        suspended != of->is_suspended || (!suspended && queue_before == 0 && sample->queue > 0);

    of->is_suspended = suspended;
    if (!is_still(actor, sample, queue_before)) {
        of->still_since = DT_NO_VALUE;
        return;
    }
    if (of->still_since == DT_NO_VALUE || is_new) {
        of->still_since = time;
        of->still_first_queue = sample->queue;
    }
    if ((sample->queue == 0 && !suspended) || time - of->still_since < of->longest_still)
        return;
    of->longest_still = time - of->still_since;
    of->still_queue = sample->queue;
    of->was_suspended = suspended;
}

static struct dt_walk *has_walk(struct dt_sampled *of) {
    if (!of->walk)
        of->walk = g_new0(struct dt_walk, 1);
    return of->walk;
}

/* A function without a name is that of a process that has not answered. */
static void note_walk(struct dt_sampled *of, const struct dt_process_sample *sample) {
    if (sample->queue < dt_limits.selective_receive.messages || !*sample->entry)
        return;
    struct dt_walk *walk = has_walk(of);
    walk->samples++;
    if (strcmp(sample->state, "waiting") == 0)
        return;
    if (dt_set(&walk->in, sample->entry))
        walk->row = 0;
    walk->row++;
    if (walk->row <= walk->longest)
        return;
    walk->longest = walk->row;
    dt_set(&walk->longest_in, walk->in);
}

static void note_stretch(bool is_in_it, int64_t time, int64_t *since, int64_t *longest) {
    if (!is_in_it)
        *since = DT_NO_VALUE;
    else if (*since == DT_NO_VALUE)
        *since = time;
    else
        *longest = MAX(*longest, time - *since);
}

/* A process that keeps running, or stays runnable, without a reduction from one sample to the
   next. */
static void note_stuck(struct dt_sampled *of, const struct dt_process_sample *sample,
                       int64_t time) {
    bool is_running = sample->reductions == 0 && strcmp(sample->state, "running") == 0;
    bool is_runnable = sample->reductions == 0 && strcmp(sample->state, "runnable") == 0;

    note_stretch(is_running, time, &of->running_since, &of->longest_running);
    note_stretch(is_runnable, time, &of->runnable_since, &of->longest_runnable);
    if (is_running && *sample->entry && time - of->running_since == of->longest_running)
        dt_set(&of->native, sample->entry);
}

static bool is_active(const struct dt_process_sample *sample) {
    static const char *const states[] = {"running", "runnable", "garbage_collecting"};

    for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
        if (strcmp(sample->state, states[i]) == 0)
            return true;
    return false;
}

void dt_summary_sample(void *data, struct dt_process *process,
                       const struct dt_process_sample *sample, int64_t time) {
    struct dt_summary *summary = data;
    struct dt_actor *actor = dt_actor_of(&summary->actors, process);

    dt_summary_at(summary, time);
    dt_summary_recorded(summary, actor->node, DT_RECORDED_SAMPLES);
    if (!actor->activity->sampled) {
        actor->activity->sampled = g_new0(struct dt_sampled, 1);
        *actor->activity->sampled = (struct dt_sampled){.first = time,
                                                        .first_queue = sample->queue,
                                                        .still_since = DT_NO_VALUE,
                                                        .running_since = DT_NO_VALUE,
                                                        .runnable_since = DT_NO_VALUE,
                                                        .last_in = g_strdup("")};
    }
    struct dt_sampled *of = actor->activity->sampled;
    note_still(actor, sample, of->count ? of->last_queue : sample->queue, time);
    note_walk(of, sample);
    note_stuck(of, sample, time);
    of->rises += of->count > 0 && sample->queue > of->last_queue;
    of->active += is_active(sample);
    of->count++;
    of->last = time;
    of->last_queue = sample->queue;
    of->max_queue = MAX(of->max_queue, sample->queue);
    of->max_memory = MAX(of->max_memory, sample->memory);
    dt_totals_sample(&summary->totals, actor, sample->memory, sample->queue);
    of->sent = actor->activity->sent;
    of->collections = actor->activity->collections;
    dt_set(&of->last_in, sample->entry);
    of->reductions += MIN(sample->reductions, UINT64_MAX - of->reductions);
    /* A process that has not answered is sampled without its function and most of its memory. */
    if (*sample->entry)
        dt_series_add(&of->memory, time, (int64_t)MIN(sample->memory, (uint64_t)INT64_MAX));
}

void dt_summary_wait(void *data, struct dt_process *process, struct dt_process *target,
                     const struct dt_process_wait *wait, int64_t time) {
    struct dt_summary *summary = data;

    dt_summary_at(summary, time);
    dt_waits_add(&summary->stopped, dt_actor_of(&summary->actors, process),
                 dt_actor_of(&summary->actors, target), wait, time);
}
