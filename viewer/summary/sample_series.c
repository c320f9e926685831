#include "summary/sample_series.h"

#include <assert.h>
#include <glib.h>
#include <string.h>

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

static void add_latest(struct dt_series *series, int64_t time, int64_t value) {
    if (series->latest == DT_SERIES_POINTS) {
        series->latest--;
        memmove(series->latest_times, series->latest_times + 1, series->latest * sizeof(int64_t));
        memmove(series->latest_values, series->latest_values + 1, series->latest * sizeof(int64_t));
    }
    series->latest_times[series->latest] = time;
    series->latest_values[series->latest++] = value;
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
    add_latest(series, time, MAX(value, 0));
}

int64_t dt_series_last(const struct dt_series *series) {
    return series->points ? series->values[series->points - 1] : 0;
}

/* Some of the samples. */
struct points {
    unsigned count;
    const int64_t *times, *values;
};

static struct points all_of(const struct dt_series *series) {
    return (struct points){series->points, series->times, series->values};
}

static struct points latest_of(const struct dt_series *series) {
    return (struct points){series->latest, series->latest_times, series->latest_values};
}

static double per_second(const struct points *of, unsigned from, unsigned to) {
    int64_t ns = of->times[to] - of->times[from];

    return ns > 0 ? (double)(of->values[to] - of->values[from]) * 1e9 / (double)ns : 0;
}

/* Whether it grows steadily from this point to the last. */
static bool grows_from(const struct points *of, unsigned first) {
    unsigned last = of->count - 1, middle = first + (last - first) / 2, rises = 0;
    int64_t most = of->values[first], largest_step = 0;

    for (unsigned i = first + 1; i <= last; i++) {
        rises += of->values[i] > most;
        most = MAX(most, of->values[i]);
        largest_step = MAX(largest_step, of->values[i] - of->values[i - 1]);
    }
    int64_t grown = of->values[last] - of->values[first];
    return rises * 100 >= (last - first) * RISES && largest_step <= grown / 2 &&
           per_second(of, middle, last) * 2 >= per_second(of, first, middle);
}

static bool grow(const struct points *of, int64_t end, struct dt_series_growth *growth) {
    for (unsigned first = 0; first + LEAST_STEPS < of->count; first++) {
        unsigned last = of->count - 1;

        int64_t ns = of->times[last] - of->times[first];
        if (ns < LEAST_NS || end - of->times[last] > ns / 2)
            return false;
        if (!grows_from(of, first))
            continue;
        *growth = (struct dt_series_growth){.begin = of->times[first],
                                            .end = of->times[last],
                                            .from = of->values[first],
                                            .to = of->values[last],
                                            .per_s = per_second(of, first, last)};
        return true;
    }
    return false;
}

/* Whether the level at its end is higher than at any point before its beginning, by half of the
   growth: the maximum of a level that rises and falls may be between two points. */
static bool is_highest(const struct dt_series *series, const struct dt_series_growth *growth) {
    int64_t most = growth->to - (growth->to - growth->from) / 2;

    for (unsigned i = 0; i < series->points && series->times[i] < growth->begin; i++)
        if (series->values[i] > most)
            return false;
    return true;
}

bool dt_series_grows(const struct dt_series *series, int64_t end, struct dt_series_growth *growth) {
    const struct points all = all_of(series), latest = latest_of(series);

    return grow(&all, end, growth) || (grow(&latest, end, growth) && is_highest(series, growth));
}

/* The last value up to a time, else the first. */
static int64_t value_at(const struct dt_series *series, int64_t time) {
    bool is_latest = series->latest && series->latest_times[0] <= time;
    const struct points of = is_latest ? latest_of(series) : all_of(series);
    unsigned i = 0;

    while (i + 1 < of.count && of.times[i + 1] <= time)
        i++;
    return of.values[i];
}

int64_t dt_series_grown(const struct dt_series *series, const struct dt_series_growth *of) {
    return MAX(value_at(series, of->end) - value_at(series, of->begin), 0);
}
