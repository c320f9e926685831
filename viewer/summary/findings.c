#include "summary/findings.h"

#include "shared/texts.h"
#include "summary/findings/rules.h"

const char *const dt_severity_names[] = {"high", "medium", "low"};

static dt_find_some *const finders[] = {
    dt_find_in_recording, dt_find_in_exits,  dt_find_in_causes, dt_find_in_lives,
    dt_find_in_messages,  dt_find_in_queues, dt_find_in_memory, dt_find_in_time,
    dt_find_in_reports,   dt_find_in_log,    dt_find_in_calls,  dt_find_in_schedulers,
    dt_find_in_ports,     dt_find_in_timers, dt_find_in_growth, /* after those that find causes of
                                                                   growth */
};

/* By severity, then in the order of rules.def. g_array_sort is stable. */
static int by_severity(const void *a, const void *b) {
    const struct dt_finding *x = a, *y = b;
    int by = (int)x->severity - (int)y->severity;

    return by ? by : dt_compare(x->rule - dt_rules, y->rule - dt_rules);
}

void dt_summary_find(struct dt_summary *summary) {
    for (size_t i = 0; i < G_N_ELEMENTS(finders); i++)
        finders[i](summary);
    g_array_sort(summary->findings, by_severity);
}
