#include "summary/top_n.h"

#include "shared/texts.h"

enum {
    /* Processes that are kept for each criterion. */
    PER_CRITERION = 500,
    /* Sorting starts when this multiple of the kept number is in memory. */
    ROOM = 4,
};

static int64_t by_run(const struct dt_actor *actor) {
    return actor->activity->run;
}

int64_t dt_top_by_messages(const struct dt_actor *actor) {
    return (int64_t)(actor->activity->sent + actor->activity->reached);
}

static int64_t by_collecting(const struct dt_actor *actor) {
    return actor->activity->collecting;
}

static int64_t by_wait(const struct dt_actor *actor) {
    return actor->activity->longest_wait;
}

int64_t dt_top_by_mailbox(const struct dt_actor *actor) {
    return (int64_t)actor->activity->mailbox_max;
}

int64_t dt_top_by_queue(const struct dt_actor *actor) {
    return actor->activity->sampled ? (int64_t)actor->activity->sampled->max_queue : 0;
}

int64_t dt_top_by_memory(const struct dt_actor *actor) {
    return actor->activity->sampled ? (int64_t)actor->activity->sampled->max_memory : 0;
}

int64_t dt_top_by_binaries(const struct dt_actor *actor) {
    return (int64_t)MIN(actor->activity->binaries, (uint64_t)INT64_MAX);
}

int64_t dt_top_by_dirty_io(const struct dt_actor *actor) {
    return actor->activity->dirty_io;
}

int64_t dt_top_by_wakes(const struct dt_actor *actor) {
    const struct dt_activity *activity = actor->activity;

    return (int64_t)(activity->wakes[DT_WAKE_TIMER] + activity->wakes[DT_WAKE_UNEXPLAINED]);
}

static int64_t by_bytes(const struct dt_actor *actor) {
    return (int64_t)actor->activity->bytes_out;
}

static int64_t by_stuck(const struct dt_actor *actor) {
    const struct dt_sampled *sampled = actor->activity->sampled;

    return sampled ? MAX(sampled->longest_running, sampled->longest_runnable) : 0;
}

static dt_criterion *const criteria[] = {by_run,
                                         dt_top_by_messages,
                                         by_collecting,
                                         by_wait,
                                         dt_top_by_mailbox,
                                         dt_top_by_queue,
                                         dt_top_by_memory,
                                         by_bytes,
                                         dt_top_by_dirty_io,
                                         dt_top_by_binaries,
                                         dt_top_by_wakes,
                                         by_stuck};

static int compare(const void *a, const void *b, void *data) {
    const struct dt_actor *x = *(struct dt_actor *const *)a, *y = *(struct dt_actor *const *)b;
    dt_criterion *by = *(dt_criterion *const *)data;
    int order = dt_compare(by(y), by(x));

    return order ? order : dt_compare((int64_t)x->number, (int64_t)y->number);
}

void dt_top_sort(GPtrArray *actors, dt_criterion *by) {
    g_ptr_array_sort_with_data(actors, compare, (void *)&by);
}

void dt_top_cut(struct dt_top_n *kept) {
    g_autoptr(GHashTable) best = g_hash_table_new(NULL, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(criteria); i++) {
        dt_top_sort(kept->actors, criteria[i]);
        for (unsigned n = 0; n < kept->actors->len && n < PER_CRITERION; n++)
            g_hash_table_add(best, g_ptr_array_index(kept->actors, n));
    }
    unsigned to = 0;
    for (unsigned n = 0; n < kept->actors->len; n++) {
        struct dt_actor *actor = g_ptr_array_index(kept->actors, n);

        if (g_hash_table_contains(best, actor)) {
            g_ptr_array_index(kept->actors, to++) = actor;
            continue;
        }
        kept->left_out++;
        kept->run += actor->activity->run;
        kept->collecting += actor->activity->collecting;
        kept->sent += actor->activity->sent;
        kept->received += actor->activity->received;
        /* Otherwise each generation of processes would retain its parent generation. */
        dt_actor_forget_parents(actor);
        dt_actor_drop(actor);
    }
    g_ptr_array_set_size(kept->actors, (int)to);
    dt_top_sort(kept->actors, by_run);
}

void dt_top_add(struct dt_top_n *kept, struct dt_actor *actor) {
    g_ptr_array_add(kept->actors, dt_actor_keep(actor));
    if (kept->actors->len >= (size_t)ROOM * PER_CRITERION * G_N_ELEMENTS(criteria))
        dt_top_cut(kept);
}

void dt_top_init(struct dt_top_n *kept) {
    kept->actors = g_ptr_array_new();
}

void dt_top_free(struct dt_top_n *kept) {
    for (unsigned i = 0; i < kept->actors->len; i++)
        dt_actor_drop(g_ptr_array_index(kept->actors, i));
    g_ptr_array_free(kept->actors, true);
}

GPtrArray *dt_top_copy(const struct dt_top_n *kept) {
    return g_ptr_array_copy(kept->actors, NULL, NULL);
}

GPtrArray *dt_top_sorted(const struct dt_top_n *kept, dt_criterion *by) {
    GPtrArray *actors = dt_top_copy(kept);

    dt_top_sort(actors, by);
    return actors;
}
