#include "page/lanes.h"

#include "shared/texts.h"

enum {
    /* Intervals in memory, as a multiple of those in the page: which processes are interesting is
       known only at the end. */
    IN_MEMORY = 8,
    /* So many times as many as there are rows are kept of those that are gone. */
    GONE = 2,
    /* A row may have so many times its even share of the page's intervals. */
    SHARE = 4,
};

struct dt_page_lanes {
    struct dt_whos *whos;
    GHashTable *live; /* each lane of a live process */
    GPtrArray *gone;
    unsigned processes, intervals;
    uint64_t seen;

    size_t stored;      /* intervals of all lanes */
    size_t most_stored; /* then all lanes are merged */
    int64_t resolution;

    int64_t run_ns, runnable_ns; /* of all */
    uint64_t messages;
};

static void unref(void *lane) {
    dt_page_lane_unref(lane);
}

struct dt_page_lanes *dt_page_lanes_new(struct dt_whos *whos, unsigned processes,
                                        unsigned intervals) {
    struct dt_page_lanes *lanes = g_new0(struct dt_page_lanes, 1);

    lanes->whos = whos;
    lanes->live = g_hash_table_new_full(NULL, NULL, unref, NULL);
    lanes->gone = g_ptr_array_new_with_free_func(unref);
    lanes->processes = processes;
    lanes->intervals = intervals;
    lanes->most_stored = (size_t)intervals * IN_MEMORY;
    lanes->resolution = DT_PAGE_LANE_RESOLUTION(0);
    return lanes;
}

void dt_page_lanes_free(struct dt_page_lanes *lanes) {
    if (!lanes)
        return;
    g_hash_table_destroy(lanes->live);
    g_ptr_array_free(lanes->gone, TRUE);
    g_free(lanes);
}

struct dt_page_lane *dt_page_lanes_of(struct dt_page_lanes *lanes, struct dt_process *process) {
    struct dt_who *who = dt_who_of(lanes->whos, process);

    if (!who || who->of_sink)
        return who ? who->of_sink : NULL;
    who->of_sink = dt_page_lane_new(who);
    g_hash_table_add(lanes->live, who->of_sink);
    lanes->seen += who->kind != DT_FOREIGN;
    return who->of_sink;
}

/* -- How interesting a lane is ------------------------------------------------------- */

static double part(double of, double whole) {
    return whole > 0 ? of / whole : 0;
}

static void score(const struct dt_page_lanes *lanes, struct dt_page_lane *lane) {
    lane->score = part((double)lane->run_ns, (double)lanes->run_ns) +
                  part((double)lane->runnable_ns, (double)lanes->runnable_ns) / 4 +
                  part((double)lane->messages, (double)lanes->messages) / 2 +
                  (lane->has_crashed ? 0.02 : 0);
    /* Processes of other nodes have no intervals to look at. */
    if (lane->who->kind == DT_FOREIGN)
        lane->score = -1;
}

static int by_score(const void *a, const void *b) {
    const struct dt_page_lane *one = *(struct dt_page_lane *const *)a,
                              *other = *(struct dt_page_lane *const *)b;

    if (one->score != other->score)
        return one->score < other->score ? 1 : -1;
    return dt_compare((int64_t)one->who->number, (int64_t)other->who->number);
}

static void forget_dull(struct dt_page_lanes *lanes) {
    unsigned most = lanes->processes * GONE;

    for (unsigned n = 0; n < lanes->gone->len; n++)
        score(lanes, g_ptr_array_index(lanes->gone, n));
    g_ptr_array_sort(lanes->gone, by_score);
    for (unsigned n = most; n < lanes->gone->len; n++) {
        struct dt_page_lane *lane = g_ptr_array_index(lanes->gone, n);

        /* It may be referred to, for its names. */
        lanes->stored -= dt_page_lane_size(lane);
        dt_page_lane_drop_intervals(lane);
    }
    if (lanes->gone->len > most)
        g_ptr_array_set_size(lanes->gone, (int)most);
}

/* -- Collecting ------------------------------------------------------------------------ */

static void each_lane(struct dt_page_lanes *lanes, void (*each)(struct dt_page_lane *, void *),
                      void *data) {
    GHashTableIter iter;
    void *lane;

    g_hash_table_iter_init(&iter, lanes->live);
    while (g_hash_table_iter_next(&iter, &lane, NULL))
        each(lane, data);
    for (unsigned n = 0; n < lanes->gone->len; n++)
        each(g_ptr_array_index(lanes->gone, n), data);
}

static void merge(struct dt_page_lane *lane, void *data) {
    struct dt_page_lanes *lanes = data;
    size_t before = dt_page_lane_size(lane);

    dt_page_lane_merge(lane, lanes->resolution);
    lanes->stored -= before - dt_page_lane_size(lane);
}

static void count_merges(struct dt_page_lane *lane, void *data) {
    dt_page_lane_count_merges(lane, data);
}

/* The finest resolution that leaves `enough` intervals, else the coarsest: found by counting, so
   that lanes in which nothing can be merged are not tried at each resolution. */
static int64_t resolution_for(struct dt_page_lanes *lanes, size_t enough) {
    size_t merges[DT_PAGE_LANE_RESOLUTIONS] = {0}, left = lanes->stored;
    int64_t resolution;

    each_lane(lanes, count_merges, merges);
    for (unsigned n = 0; n < DT_PAGE_LANE_RESOLUTIONS; n++) {
        resolution = DT_PAGE_LANE_RESOLUTION(n);
        left -= merges[n];
        if (left <= enough && resolution >= lanes->resolution)
            break;
    }
    return resolution;
}

/* Until half of the room is free. What can't be merged raises the limit: it is live state. */
static void merge_all(struct dt_page_lanes *lanes) {
    size_t before = lanes->stored;

    lanes->resolution = resolution_for(lanes, lanes->most_stored / 2);
    each_lane(lanes, merge, lanes);
    if (lanes->stored > before / 2)
        lanes->most_stored = MAX(lanes->most_stored, 2 * lanes->stored);
}

void dt_page_lanes_add(struct dt_page_lanes *lanes, const struct dt_interval *interval,
                       uint32_t text) {
    struct dt_page_lane *lane = dt_page_lanes_of(lanes, interval->process);
    unsigned most = lanes->intervals;
    int64_t run_ns, runnable_ns;
    size_t before;

    if (!lane)
        return;
    run_ns = lane->run_ns;
    runnable_ns = lane->runnable_ns;
    before = dt_page_lane_size(lane);
    dt_page_lane_add(lane, interval, text);
    lanes->run_ns += lane->run_ns - run_ns;
    lanes->runnable_ns += lane->runnable_ns - runnable_ns;
    if (dt_page_lane_size(lane) > most)
        dt_page_lane_limit(lane, most / 2);
    lanes->stored += dt_page_lane_size(lane);
    lanes->stored -= before;
    if (lanes->stored > lanes->most_stored)
        merge_all(lanes);
}

void dt_page_lanes_gone(struct dt_page_lanes *lanes, struct dt_process *process) {
    struct dt_who *who = process->of_sink;
    struct dt_page_lane *lane = who ? who->of_sink : NULL;

    if (!lane)
        return;
    who->of_sink = NULL;
    g_hash_table_steal(lanes->live, lane);
    g_ptr_array_add(lanes->gone, lane);
    lanes->messages += lane->messages;
    if (lanes->gone->len > 2 * GONE * lanes->processes)
        forget_dull(lanes);
}

/* -- The rows --------------------------------------------------------------------------- */

static size_t shown_intervals(const struct dt_page_lanes *lanes) {
    size_t sum = 0;

    for (unsigned n = 0; n < lanes->gone->len; n++)
        sum += dt_page_lane_size(g_ptr_array_index(lanes->gone, n));
    return sum;
}

const GPtrArray *dt_page_lanes_rows(struct dt_page_lanes *lanes) {
    unsigned most = lanes->processes;

    forget_dull(lanes);
    if (lanes->gone->len > most)
        g_ptr_array_set_size(lanes->gone, (int)most);
    while (lanes->gone->len > 0 &&
           ((struct dt_page_lane *)g_ptr_array_index(lanes->gone, lanes->gone->len - 1))->score <=
               0)
        g_ptr_array_set_size(lanes->gone, (int)lanes->gone->len - 1);
    for (unsigned share = SHARE * (lanes->intervals / MAX(lanes->gone->len, 1));
         share > 0 && shown_intervals(lanes) > lanes->intervals; share -= MAX(share / 4, 1))
        for (unsigned n = 0; n < lanes->gone->len; n++)
            dt_page_lane_limit(g_ptr_array_index(lanes->gone, n), share);
    return lanes->gone;
}

uint64_t dt_page_lanes_seen(const struct dt_page_lanes *lanes) {
    return lanes->seen;
}
