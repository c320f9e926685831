#include "summary/summary.h"

/* Rows of each table of pairs, at most. */
enum { TALKS = 8192, SERVER_CALLS = 2048, DEAD = 2048, REPORTS = 1024 };

static void clear_lost(void *lost) {
    g_free(((struct dt_seen_lost *)lost)->stream);
}

static void clear_finding(void *data) {
    struct dt_finding *finding = data;

    g_free(finding->text);
    dt_actor_drop(finding->actor);
}

struct dt_summary *dt_summary_new(void) {
    struct dt_summary *summary = g_new0(struct dt_summary, 1);

    dt_actors_init(&summary->actors, dt_activity_new, dt_activity_free);
    summary->period.begin = summary->period.end = DT_NO_VALUE;
    summary->lost = g_array_new(false, false, sizeof(struct dt_seen_lost));
    g_array_set_clear_func(summary->lost, clear_lost);
    summary->findings = g_array_new(false, false, sizeof(struct dt_finding));
    g_array_set_clear_func(summary->findings, clear_finding);
    dt_top_init(&summary->processes);
    dt_top_init(&summary->ports);
    dt_pairs_init(&summary->talks, TALKS);
    dt_pairs_init(&summary->server_calls, SERVER_CALLS);
    dt_pairs_init(&summary->dead, DEAD);
    dt_pairs_init(&summary->reports, REPORTS);
    dt_pairs_init(&summary->copies, REPORTS);
    dt_names_init(&summary->calls);
    dt_names_init(&summary->spans);
    dt_names_init(&summary->telemetry);
    dt_names_init(&summary->counters);
    dt_requests_init(&summary->requests);
    dt_lives_init(&summary->lives);
    dt_totals_init(&summary->totals);
    dt_literals_init(&summary->literals);
    dt_purges_init(&summary->purges);
    dt_ets_tables_init(&summary->ets_tables);
    dt_port_queues_init(&summary->port_queues);
    dt_socket_owners_init(&summary->socket_owners);
    dt_waits_init(&summary->stopped);
    dt_list_init(&summary->crashes, false);
    dt_list_init(&summary->log, false);
    dt_list_init(&summary->others, false);
    dt_list_init(&summary->nodes_down, false);
    dt_list_init(&summary->withheld, false);
    dt_list_init(&summary->gave_up, false);
    dt_list_init(&summary->long_runs, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(summary->dirty); i++)
        dt_names_init(&summary->dirty[i]);
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
    dt_pairs_free(&summary->copies);
    dt_names_free(&summary->calls);
    dt_names_free(&summary->spans);
    dt_names_free(&summary->telemetry);
    dt_names_free(&summary->counters);
    dt_requests_free(&summary->requests);
    dt_lives_free(&summary->lives);
    dt_totals_free(&summary->totals);
    dt_literals_free(&summary->literals);
    dt_purges_free(&summary->purges);
    dt_ets_tables_free(&summary->ets_tables);
    dt_port_queues_free(&summary->port_queues);
    dt_socket_owners_free(&summary->socket_owners);
    dt_waits_free(&summary->stopped);
    dt_list_free(&summary->crashes);
    dt_unclear_free(&summary->unclear_exits);
    dt_list_free(&summary->log);
    dt_list_free(&summary->others);
    dt_list_free(&summary->nodes_down);
    dt_list_free(&summary->withheld);
    dt_list_free(&summary->gave_up);
    dt_list_free(&summary->long_runs);
    for (unsigned i = 0; i < G_N_ELEMENTS(summary->dirty); i++)
        dt_names_free(&summary->dirty[i]);
    dt_list_free(&summary->waits);
    dt_list_free(&summary->collections);
    g_array_free(summary->findings, true);
    g_array_free(summary->lost, true);
    dt_top_free(&summary->processes);
    dt_top_free(&summary->ports);
    dt_load_free(&summary->load);
    dt_actors_free(&summary->actors);
    g_free(summary);
}
