#include "summary/load.h"

enum { FIRST_STEP = 1000 /* ns */ };

const struct dt_load_kind dt_load_kinds[DT_LOADS] = {
    [DT_LOAD_RUN] = {"run", DT_RECORDED_SCHEDULING, true},
    [DT_LOAD_DIRTY_IO] = {"dirty_io", DT_RECORDED_SCHEDULING, true},
    [DT_LOAD_COLLECTING] = {"collecting", DT_RECORDED_COLLECTIONS, true},
    [DT_LOAD_RUNNABLE] = {"runnable", DT_RECORDED_SCHEDULING, true},
    [DT_LOAD_SENT] = {"sent", DT_RECORDED_SENDS, false},
    [DT_LOAD_CALLS] = {"calls", DT_RECORDED_CALLS, false},
};

void dt_load_init(struct dt_load *load) {
    load->nodes = g_ptr_array_new_with_free_func(g_free);
}

void dt_load_free(struct dt_load *load) {
    g_ptr_array_free(load->nodes, true);
}

const int64_t *dt_load_of(const struct dt_load *load, const struct dt_seen_node *node,
                          enum dt_load_number number) {
    static const int64_t nothing[DT_STEPS];
    const struct dt_load_series *series =
        node->number < load->nodes->len ? g_ptr_array_index(load->nodes, node->number) : NULL;
    return series ? series->of[number] : nothing;
}

/* -- Collecting ------------------------------------------------------------------------- */

static struct dt_load_series *series_of(struct dt_load *load, const struct dt_seen_node *node) {
    if (node->number >= load->nodes->len)
        g_ptr_array_set_size(load->nodes, (int)node->number + 1);
    void **series = &g_ptr_array_index(load->nodes, node->number);
    if (!*series)
        *series = g_new0(struct dt_load_series, 1);
    return *series;
}

static void halve(int64_t series[DT_STEPS]) {
    for (size_t i = 0; i < DT_STEPS / 2; i++)
        series[i] = series[2 * i] + series[2 * i + 1];
    for (size_t i = DT_STEPS / 2; i < DT_STEPS; i++)
        series[i] = 0;
}

static void double_step(struct dt_load *load) {
    load->step *= 2;
    for (unsigned i = 0; i < load->nodes->len; i++) {
        struct dt_load_series *series = g_ptr_array_index(load->nodes, i);

        for (unsigned n = 0; series && n < DT_LOADS; n++)
            halve(series->of[n]);
    }
}

/* The step of a time. Times before the first one belong to the first step. */
static unsigned step_of(struct dt_load *load, struct dt_period *period, int64_t time) {
    if (!load->step)
        load->step = FIRST_STEP;
    if (period->begin == DT_NO_VALUE)
        period->begin = time;
    if (time <= period->begin)
        return 0;
    while ((time - period->begin) / load->step >= DT_STEPS)
        double_step(load);
    return (unsigned)((time - period->begin) / load->step);
}

void dt_load_time(struct dt_load *load, struct dt_period *period, const struct dt_seen_node *node,
                  enum dt_load_number number, int64_t begin, int64_t end) {
    if (!node)
        return;
    unsigned last = step_of(load, period, end);
    int64_t *of = series_of(load, node)->of[number];
    for (unsigned i = step_of(load, period, begin); i <= last; i++) {
        int64_t from = period->begin + i * load->step, to = from + load->step;

        from = MAX(from, begin);
        to = MIN(to, end);
        if (to > from)
            of[i] += to - from;
    }
}

void dt_load_count(struct dt_load *load, struct dt_period *period, const struct dt_seen_node *node,
                   enum dt_load_number number, int64_t time) {
    if (node)
        series_of(load, node)->of[number][step_of(load, period, time)]++;
}

/* -- Showing ---------------------------------------------------------------------------- */

unsigned dt_load_steps(const struct dt_load *load, const struct dt_period *period) {
    if (!load->step || period->end <= period->begin)
        return 0;
    return (unsigned)MIN((period->end - period->begin) / load->step + 1, DT_STEPS);
}

int64_t dt_load_ns(const struct dt_load *load, const struct dt_period *period, unsigned step) {
    int64_t left = period->end - period->begin - step * load->step;

    return left > 0 ? MIN(left, load->step) : load->step;
}
