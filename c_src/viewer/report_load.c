#include "viewer/report_parts.h"

/* The steps get twice as long whenever the recording outgrows them: so no pass before is needed
 * that finds out its length. */

enum { FIRST_STEP = 1000 };

static void halve(int64_t *series) {
    for (size_t i = 0; i < DT_STEPS / 2; i++)
        series[i] = series[2 * i] + series[2 * i + 1];
    for (size_t i = DT_STEPS / 2; i < DT_STEPS; i++)
        series[i] = 0;
}

static void halve_counts(uint64_t *series) {
    for (size_t i = 0; i < DT_STEPS / 2; i++)
        series[i] = series[2 * i] + series[2 * i + 1];
    for (size_t i = DT_STEPS / 2; i < DT_STEPS; i++)
        series[i] = 0;
}

static void double_step(struct dt_report *report) {
    report->step *= 2;
    for (guint i = 0; i < report->nodes->len; i++) {
        struct dt_seen_node *node = g_ptr_array_index(report->nodes, i);
        if (!node)
            continue;
        halve(node->load.run);
        halve(node->load.collecting);
        halve(node->load.runnable);
        halve_counts(node->load.sent);
        halve_counts(node->load.calls);
    }
}

/* The step of a time; times before the first one belong to the first step. */
static int step_of(struct dt_report *report, int64_t time) {
    if (!report->step)
        report->step = FIRST_STEP;
    if (report->begin == DT_NO_VALUE)
        report->begin = time;
    if (time <= report->begin)
        return 0;
    while ((time - report->begin) / report->step >= DT_STEPS)
        double_step(report);
    return (int)((time - report->begin) / report->step);
}

void dt_load_time(struct dt_report *report, int64_t *series, int64_t begin, int64_t end) {
    int last = step_of(report, end), first = step_of(report, begin);
    for (int i = first; i <= last; i++) {
        int64_t from = report->begin + i * report->step, to = from + report->step;
        from = MAX(from, begin);
        to = MIN(to, end);
        if (to > from)
            series[i] += to - from;
    }
}

void dt_load_count(struct dt_report *report, uint64_t *series, int64_t time) {
    series[step_of(report, time)]++;
}

unsigned dt_load_steps(const struct dt_report *report) {
    if (!report->step || report->end <= report->begin)
        return 0;
    return (unsigned)MIN((report->end - report->begin) / report->step + 1, DT_STEPS);
}

int64_t dt_load_ns(const struct dt_report *report, unsigned step) {
    int64_t left = report->end - report->begin - step * report->step;
    return left > 0 ? MIN(left, report->step) : report->step;
}
