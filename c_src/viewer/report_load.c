#include "viewer/report_parts.h"

/* The steps get twice as long whenever the recording outgrows them: so no pass before is needed
 * that finds out its length. */

enum { FIRST_STEP = 1000 /* ns */ };

const struct dt_load_kind dt_load_kinds[DT_LOADS] = {
    [DT_LOAD_RUN] = {"run", DT_TOLD_SCHEDULING, true},
    [DT_LOAD_COLLECTING] = {"collecting", DT_TOLD_COLLECTIONS, true},
    [DT_LOAD_RUNNABLE] = {"runnable", DT_TOLD_SCHEDULING, true},
    [DT_LOAD_SENT] = {"sent", DT_TOLD_SENDS, false},
    [DT_LOAD_CALLS] = {"calls", DT_TOLD_CALLS, false},
};

static void halve(int64_t series[DT_STEPS]) {
    for (size_t i = 0; i < DT_STEPS / 2; i++)
        series[i] = series[2 * i] + series[2 * i + 1];
    for (size_t i = DT_STEPS / 2; i < DT_STEPS; i++)
        series[i] = 0;
}

static void double_step(struct dt_report *report) {
    report->step *= 2;
    for (guint i = 0; i < report->nodes->len; i++) {
        struct dt_seen_node *node = g_ptr_array_index(report->nodes, i);
        for (unsigned n = 0; node && n < DT_LOADS; n++)
            halve(node->load[n]);
    }
}

/* The step of a time; times before the first one belong to the first step. */
static unsigned step_of(struct dt_report *report, int64_t time) {
    if (!report->step)
        report->step = FIRST_STEP;
    if (report->begin == DT_NO_VALUE)
        report->begin = time;
    if (time <= report->begin)
        return 0;
    while ((time - report->begin) / report->step >= DT_STEPS)
        double_step(report);
    return (unsigned)((time - report->begin) / report->step);
}

void dt_load_time(struct dt_report *report, struct dt_seen_node *node, enum dt_load load,
                  int64_t begin, int64_t end) {
    if (!node)
        return;
    unsigned last = step_of(report, end);
    for (unsigned i = step_of(report, begin); i <= last; i++) {
        int64_t from = report->begin + i * report->step, to = from + report->step;
        from = MAX(from, begin);
        to = MIN(to, end);
        if (to > from)
            node->load[load][i] += to - from;
    }
}

void dt_load_count(struct dt_report *report, struct dt_seen_node *node, enum dt_load load,
                   int64_t time) {
    if (node)
        node->load[load][step_of(report, time)]++;
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
