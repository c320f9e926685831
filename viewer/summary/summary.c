#include "summary/summary.h"

/* Rows of each table of pairs, at most. */
enum { TALKS = 8192, SERVER_CALLS = 2048, DEAD = 2048, REPORTS = 1024 };

static void clear_lost(gpointer lost) {
    g_free(((struct dt_seen_lost *)lost)->stream);
}

static void clear_finding(gpointer of) {
    struct dt_finding *finding = of;
    g_free(finding->text);
    dt_who_drop(finding->who);
}

struct dt_summary *dt_summary_new(void) {
    struct dt_summary *summary = g_new0(struct dt_summary, 1);
    dt_whos_init(&summary->whos);
    summary->period.begin = summary->period.end = DT_NO_VALUE;
    summary->lost = g_array_new(FALSE, FALSE, sizeof(struct dt_seen_lost));
    g_array_set_clear_func(summary->lost, clear_lost);
    summary->findings = g_array_new(FALSE, FALSE, sizeof(struct dt_finding));
    g_array_set_clear_func(summary->findings, clear_finding);
    dt_top_init(&summary->processes);
    dt_top_init(&summary->ports);
    dt_pairs_init(&summary->talks, TALKS);
    dt_pairs_init(&summary->server_calls, SERVER_CALLS);
    dt_pairs_init(&summary->dead, DEAD);
    dt_pairs_init(&summary->reports, REPORTS);
    dt_names_init(&summary->calls);
    dt_names_init(&summary->spans);
    dt_names_init(&summary->counters);
    dt_requests_init(&summary->requests);
    dt_lives_init(&summary->lives);
    dt_list_init(&summary->crashes, false);
    dt_list_init(&summary->log, false);
    dt_list_init(&summary->others, false);
    dt_list_init(&summary->nodes_down, false);
    dt_list_init(&summary->withheld, false);
    dt_list_init(&summary->waits, true);
    dt_list_init(&summary->collections, true);
    dt_load_init(&summary->load);
    return summary;
}

void dt_summary_free(struct dt_summary *summary) {
    if (!summary)
        return;
    dt_pairs_free(&summary->talks);
    dt_pairs_free(&summary->server_calls);
    dt_pairs_free(&summary->dead);
    dt_pairs_free(&summary->reports);
    dt_names_free(&summary->calls);
    dt_names_free(&summary->spans);
    dt_names_free(&summary->counters);
    dt_requests_free(&summary->requests);
    dt_lives_free(&summary->lives);
    dt_list_free(&summary->crashes);
    dt_list_free(&summary->log);
    dt_list_free(&summary->others);
    dt_list_free(&summary->nodes_down);
    dt_list_free(&summary->withheld);
    dt_list_free(&summary->waits);
    dt_list_free(&summary->collections);
    g_array_free(summary->findings, TRUE);
    g_array_free(summary->lost, TRUE);
    dt_top_free(&summary->processes);
    dt_top_free(&summary->ports);
    dt_load_free(&summary->load);
    dt_whos_free(&summary->whos);
    g_free(summary);
}
