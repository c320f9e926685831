#include "page/lanes.h"

#include "page/folds.h"
#include "shared/texts.h"

enum {
    /* Intervals in memory, as a multiple of those in the page, because only the end shows which
       processes are interesting. */
    IN_MEMORY = 8,
    /* Lanes of gone processes that are kept, as a multiple of the number of rows. */
    GONE = 2,
    /* The share of the memory for lanes that look interesting so far. */
    INTERESTING_PERCENT = 75,
    /* One part in this many of the page's intervals is for rows that a reader unfolds. */
    UNFOLDED_PART = 4,
};

struct dt_page_lanes {
    struct dt_actors *actors;
    GHashTable *live; /* the lanes of live processes */
    GPtrArray *gone;  /* lanes of processes that are gone, and of folds */
    struct dt_page_folds *folds;
    GPtrArray *unfolded; /* at the end: lanes that folds own */
    unsigned processes, intervals;
    uint64_t seen;

    size_t stored;      /* intervals of all lanes */
    size_t most_stored; /* above it, lanes are merged */
    int64_t begin, end; /* of all intervals */

    int64_t run_ns, runnable_ns; /* of all lanes */
    uint64_t messages;
};

static void unref(void *lane) {
    dt_page_lane_unref(lane);
}

struct dt_page_lanes *dt_page_lanes_new(struct dt_actors *actors, unsigned processes,
                                        unsigned intervals) {
    struct dt_page_lanes *lanes = g_new0(struct dt_page_lanes, 1);

    lanes->actors = actors;
    lanes->live = g_hash_table_new_full(NULL, NULL, unref, NULL);
    lanes->gone = g_ptr_array_new_with_free_func(unref);
    lanes->folds = dt_page_folds_new();
    lanes->unfolded = g_ptr_array_new();
    lanes->processes = processes;
    lanes->intervals = intervals;
    lanes->most_stored = (size_t)intervals * IN_MEMORY;
    lanes->begin = INT64_MAX;
    lanes->end = INT64_MIN;
    return lanes;
}

void dt_page_lanes_free(struct dt_page_lanes *lanes) {
    if (!lanes)
        return;
    g_hash_table_destroy(lanes->live);
    g_ptr_array_free(lanes->gone, true);
    dt_page_folds_free(lanes->folds);
    g_ptr_array_free(lanes->unfolded, true);
    g_free(lanes);
}

struct dt_page_lane *dt_page_lanes_of(struct dt_page_lanes *lanes, struct dt_process *process) {
    struct dt_actor *actor = dt_actor_of(lanes->actors, process);

    if (!actor || actor->of_sink)
        return actor ? actor->of_sink : NULL;
    actor->of_sink = dt_page_lane_new(actor);
    g_hash_table_add(lanes->live, actor->of_sink);
    lanes->seen += actor->kind != DT_FOREIGN;
    return actor->of_sink;
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
    /* Processes of other nodes have no intervals. */
    if (lane->actor->kind == DT_FOREIGN)
        lane->score = -1;
}

static int by_score(const void *a, const void *b) {
    const struct dt_page_lane *one = *(struct dt_page_lane *const *)a,
                              *other = *(struct dt_page_lane *const *)b;

    if (one->score != other->score)
        return one->score < other->score ? 1 : -1;
    return dt_compare((int64_t)one->actor->number, (int64_t)other->actor->number);
}

/* Sorts the most interesting lanes first, as of now. */
static void rank(const struct dt_page_lanes *lanes, GPtrArray *of) {
    for (unsigned n = 0; n < of->len; n++)
        score(lanes, g_ptr_array_index(of, n));
    g_ptr_array_sort(of, by_score);
}

static size_t intervals_of(const GPtrArray *of) {
    size_t sum = 0;

    for (unsigned n = 0; n < of->len; n++) {
        const struct dt_page_lane *lane = g_ptr_array_index(of, n);

        sum += dt_page_lane_size(lane);
        if (dt_page_is_fold(lane))
            sum += dt_page_fold_size(lane->fold);
    }
    return sum;
}

static void forget_dull(struct dt_page_lanes *lanes) {
    unsigned most = lanes->processes * GONE;
    size_t before = intervals_of(lanes->gone);

    dt_page_folds_apply(lanes->gone);
    rank(lanes, lanes->gone);
    for (unsigned n = most; n < lanes->gone->len; n++) {
        struct dt_page_lane *lane = g_ptr_array_index(lanes->gone, n);

        /* Messages may still refer to the lane, for its names. */
        dt_page_lane_drop_intervals(lane);
        if (dt_page_is_fold(lane))
            dt_page_fold_limit(lane->fold, 0);
    }
    if (lanes->gone->len > most)
        g_ptr_array_set_size(lanes->gone, (int)most);
    lanes->stored += intervals_of(lanes->gone) - before;
}

/* -- Fair shares ------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    const struct dt_page_lane *one = *(struct dt_page_lane *const *)a,
                              *other = *(struct dt_page_lane *const *)b;

    return dt_compare(dt_page_lane_size(one), dt_page_lane_size(other));
}

/* Gives each lane an equal share of `room`; the unused parts go to the lanes that need more. So a
   lane with very many intervals is merged before one with few. Returns the unused rest. */
static size_t share(void *const *of, unsigned size, size_t room) {
    g_autoptr(GPtrArray) lanes = g_ptr_array_sized_new(size);

    for (unsigned n = 0; n < size; n++)
        g_ptr_array_add(lanes, of[n]);
    g_ptr_array_sort(lanes, by_size);
    for (unsigned n = 0; n < size; n++) {
        struct dt_page_lane *lane = g_ptr_array_index(lanes, n);

        dt_page_lane_limit(lane, (unsigned)(room / (size - n)));
        room -= MIN(room, dt_page_lane_size(lane));
    }
    return room;
}

static void add_unfolded(GPtrArray *to, const struct dt_page_lane *lane) {
    for (unsigned n = 0; dt_page_is_fold(lane) && n < lane->fold->unfolds->len; n++)
        g_ptr_array_add(to, g_ptr_array_index(lane->fold->unfolds, n));
}

/* Merges until half of the room is free. Live state that cannot be merged raises the limit. Most of
   the room goes to as many lanes as the page may show, because the others will probably have no
   row. */
static void merge_all(struct dt_page_lanes *lanes) {
    g_autoptr(GPtrArray) all = g_ptr_array_new(), others = g_ptr_array_new();
    size_t before = lanes->stored, room = lanes->most_stored / 2;
    size_t for_interesting = room / 100 * INTERESTING_PERCENT;
    unsigned interesting;
    GHashTableIter iter;
    void *lane;

    g_hash_table_iter_init(&iter, lanes->live);
    while (g_hash_table_iter_next(&iter, &lane, NULL))
        g_ptr_array_add(all, lane);
    for (unsigned n = 0; n < lanes->gone->len; n++)
        g_ptr_array_add(all, g_ptr_array_index(lanes->gone, n));
    rank(lanes, all);
    interesting = MIN(all->len, GONE * lanes->processes);
    room -= for_interesting - share(all->pdata, interesting, for_interesting);
    for (unsigned n = interesting; n < all->len; n++)
        g_ptr_array_add(others, g_ptr_array_index(all, n));
    for (unsigned n = 0; n < all->len; n++)
        add_unfolded(others, g_ptr_array_index(all, n));
    share(others->pdata, others->len, room);
    lanes->stored = intervals_of(all);
    if (lanes->stored > before / 2)
        lanes->most_stored = MAX(lanes->most_stored, 2 * lanes->stored);
}

/* -- Collecting ------------------------------------------------------------------------ */

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
    lanes->begin = MIN(lanes->begin, interval->begin);
    lanes->end = MAX(lanes->end, interval->end);
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
    struct dt_actor *actor = process->of_sink;
    struct dt_page_lane *lane = actor ? actor->of_sink : NULL;

    if (!lane)
        return;
    actor->of_sink = NULL;
    g_hash_table_steal(lanes->live, lane);
    g_ptr_array_add(lanes->gone, lane);
    lanes->messages += lane->messages;
    dt_page_folds_note(lanes->folds, lane, process, lanes->end - MIN(lanes->begin, lanes->end));
    if (lanes->gone->len > 2 * GONE * lanes->processes)
        forget_dull(lanes);
}

/* -- The rows --------------------------------------------------------------------------- */

/* Lists and merges the lanes that a reader may unfold. Returns the unused part of `room`. */
static size_t share_unfolded(GPtrArray *unfolded, const GPtrArray *rows, unsigned room) {
    for (unsigned n = 0; n < rows->len; n++) {
        const struct dt_page_lane *lane = g_ptr_array_index(rows, n);

        /* Each has at least one interval. */
        if (dt_page_is_fold(lane))
            dt_page_fold_limit(lane->fold, room - unfolded->len);
        add_unfolded(unfolded, lane);
    }
    return share(unfolded->pdata, unfolded->len, room);
}

const GPtrArray *dt_page_lanes_rows(struct dt_page_lanes *lanes) {
    unsigned for_unfolded = lanes->intervals / UNFOLDED_PART;
    unsigned for_rows = lanes->intervals - for_unfolded;

    /* Each row has at least one interval. */
    unsigned most = MIN(lanes->processes, for_rows);
    GPtrArray *rows = lanes->gone;

    forget_dull(lanes);
    if (rows->len > most)
        g_ptr_array_set_size(rows, (int)most);
    while (rows->len > 0 && ((struct dt_page_lane *)rows->pdata[rows->len - 1])->score <= 0)
        g_ptr_array_set_size(rows, (int)rows->len - 1);
    share(rows->pdata, rows->len, for_rows + share_unfolded(lanes->unfolded, rows, for_unfolded));
    return rows;
}

const GPtrArray *dt_page_lanes_unfolded(const struct dt_page_lanes *lanes) {
    return lanes->unfolded;
}

uint64_t dt_page_lanes_seen(const struct dt_page_lanes *lanes) {
    return lanes->seen;
}
