/* Findings about the recording itself. */
#include <string.h>

#include "shared/amounts.h"
#include "summary/findings/rules.h"

static void lost(struct dt_summary *summary) {
    if (!summary->lost_rows)
        return;
    if (summary->lost_events)
        dt_find(summary, DT_RULE_lost_events, DT_HIGH, NULL,
                "%s%" PRIu64
                " events were lost: counts are too low, and times can be wrong around the gaps",
                summary->lost_unknown ? "more than " : "", summary->lost_events);
    else
        dt_find(summary, DT_RULE_lost_events, DT_HIGH, NULL,
                "an unknown number of events were lost: counts are too low, and times can be wrong "
                "around the gaps");
}

static void skipped(struct dt_summary *summary) {
    if (summary->skipped && !summary->events)
        dt_find(summary, DT_RULE_no_events, DT_HIGH, NULL,
                "the recording has no dyntrace events; other events skipped: %" PRIu64,
                summary->skipped);
}

static bool was_reported_before(const struct dt_listed *rows, unsigned at) {
    for (unsigned i = 0; i < at; i++)
        if (rows[i].node == rows[at].node && strcmp(rows[i].word, rows[at].word) == 0)
            return true;
    return false;
}

/* The application reports it when it is stopped with the node (dyntrace_withheld.erl). */
static bool is_shutdown(const struct dt_listed *row) {
    return strcmp(row->word, "all_events") == 0 &&
           strcmp(row->text, "the node is shutting down") == 0;
}

static void shut_down(struct dt_summary *summary, const struct dt_listed *row) {
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes) && row->node;

    dt_find(summary, DT_RULE_node_stopped, DT_MEDIUM, NULL,
            "the node%s%s was shut down %s into the recording", are_several ? " " : "",
            are_several ? row->node->name : "", dt_show_ns(row->time - summary->period.begin).text);
}

/* Whether the node that a line begins with was shut down in order. */
static bool was_shut_down(const struct dt_summary *summary, const char *line) {
    for (unsigned i = 0; i < summary->withheld.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->withheld.rows, struct dt_listed, i);

        if (!is_shutdown(row) || !row->node)
            continue;
        /* As an atom, a name may have quotes. */
        g_autofree char *name = g_strstrip(g_strdelimit(g_strdup(row->node->name), "'", ' '));
        if (g_str_has_prefix(line, name))
            return true;
    }
    return false;
}

static void ended(struct dt_summary *summary) {
    g_auto(GStrv) lines = g_strsplit(summary->ended, "\n", -1);

    for (unsigned i = 0; i < dt_limits.node_ended.per_rule && lines[i]; i++)
        if (*lines[i] && !was_shut_down(summary, lines[i]))
            dt_find(summary, DT_RULE_node_ended, DT_HIGH, NULL, "%s", lines[i]);
}

/* Each `what` once per node, with its first reason. */
static void withheld(struct dt_summary *summary) {
    const struct dt_listed *rows = (const void *)summary->withheld.rows->data;
    bool are_several = dt_seen_nodes_are_several(&summary->actors.nodes);
    uint64_t left = dt_limits.withheld.per_rule;

    for (unsigned i = 0; i < summary->withheld.rows->len && left > 0; i++) {
        if (is_shutdown(&rows[i])) {
            shut_down(summary, &rows[i]);
            continue;
        }
        if (was_reported_before(rows, i))
            continue;
        left--;
        bool is_named = are_several && rows[i].node;
        dt_find(summary, DT_RULE_withheld, DT_LOW, NULL, "%s could not be traced%s%s: %s",
                rows[i].word, is_named ? " on " : "", is_named ? rows[i].node->name : "",
                rows[i].text);
    }
}

void dt_find_in_recording(struct dt_summary *summary) {
    lost(summary);
    skipped(summary);
    ended(summary);
    withheld(summary);
}
