#include "summary/sample_series.h"

#include <assert.h>
#include <glib.h>

#define LEAST_NS INT64_C(3900000000) /* timers of samples may be early or late by some ms */
enum {
    LEAST_STEPS = 4,
    RISES = 80, /* percent of the steps */
};

static_assert(DT_SERIES_POINTS % 2 == 0, "halve removes the last point");

static void halve(struct dt_series *series) {
    series->points /= 2;
    for (size_t i = 0; i < series->points; i++) {
        series->times[i] = series->times[2 * i];
        series->values[i] = series->values[2 * i];
    }
    series->per_point *= 2;
}

void dt_series_add(struct dt_series *series, int64_t time, int64_t value) {
    bool is_full = series->in_last == series->per_point;

    if (series->per_point == 0)
        series->per_point = 1;
    if (is_full && series->points == DT_SERIES_POINTS)
        halve(series);
    if (is_full) {
        series->points++;
        series->in_last = 0;
    }
    series->in_last++;
    series->times[series->points - 1] = time;
    series->values[series->points - 1] = MAX(value, 0);
}

int64_t dt_series_last(const struct dt_series *series) {
    return series->points ? series->values[series->points - 1] : 0;
}

static double per_second(const struct dt_series *series, unsigned from, unsigned to) {
    int64_t ns = series->times[to] - series->times[from];

    return ns > 0 ? (double)(series->values[to] - series->values[from]) * 1e9 / (double)ns : 0;
}

/* Whether it grows steadily from this point to the last. */
static bool grows_from(const struct dt_series *series, unsigned first) {
    unsigned last = series->points - 1, middle = first + (last - first) / 2, rises = 0;
    int64_t most = series->values[first], largest_step = 0;

    for (unsigned i = first + 1; i <= last; i++) {
        rises += series->values[i] > most;
        most = MAX(most, series->values[i]);
        largest_step = MAX(largest_step, series->values[i] - series->values[i - 1]);
    }
    int64_t grown = series->values[last] - series->values[first];
    return rises * 100 >= (last - first) * RISES && largest_step <= grown / 2 &&
           per_second(series, middle, last) * 2 >= per_second(series, first, middle);
}

bool dt_series_grows(const struct dt_series *series, int64_t end, struct dt_series_growth *growth) {
    for (unsigned first = 0; first + LEAST_STEPS < series->points; first++) {
        unsigned last = series->points - 1;

        int64_t ns = series->times[last] - series->times[first];
        if (ns < LEAST_NS || end - series->times[last] > ns / 2)
            return false;
        if (!grows_from(series, first))
            continue;
        *growth = (struct dt_series_growth){.begin = series->times[first],
                                            .end = series->times[last],
                                            .from = series->values[first],
                                            .to = series->values[last],
                                            .per_s = per_second(series, first, last)};
        return true;
    }
    return false;
}

/* The last value up to a time, else the first. */
static int64_t value_at(const struct dt_series *series, int64_t time) {
    unsigned i = 0;

    while (i + 1 < series->points && series->times[i + 1] <= time)
        i++;
    return series->values[i];
}

int64_t dt_series_grown(const struct dt_series *series, const struct dt_series_growth *of) {
    return MAX(value_at(series, of->end) - value_at(series, of->begin), 0);
}
