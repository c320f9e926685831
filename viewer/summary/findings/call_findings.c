/* Traced functions, spans, telemetry. */
#include <string.h>

#include "shared/amounts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

static void exceptions(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_calls(summary);
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.exceptions.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (row->failed < dt_limits.exceptions.calls ||
            !dt_is_share((int64_t)row->failed, (int64_t)row->count, dt_limits.exceptions.share))
            continue;
        bool are_several = row->node && dt_seen_nodes_are_several(&summary->actors.nodes);
        dt_find(summary, DT_RULE_exceptions, DT_LOW, NULL,
                "%s%s%s: %" PRIu64 " of %" PRIu64 " calls ended with an exception", row->name,
                are_several ? " on " : "", are_several ? row->node->name : "", row->failed,
                row->count);
        found++;
    }
}

static void spans(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_spans(summary);
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.failed_spans.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (!row->failed)
            continue;
        dt_find(summary, DT_RULE_failed_spans, DT_MEDIUM, NULL,
                "span %s: %" PRIu64 " of %" PRIu64 " ended with an exception", row->name,
                row->failed, row->count);
        found++;
    }
}

static void failed_telemetry(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_telemetry(summary);
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.failed_telemetry.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        const int64_t failed = (int64_t)row->failed, all = (int64_t)row->count;

        if (row == summary->telemetry.others || row->failed < dt_limits.failed_telemetry.spans ||
            !dt_is_share(failed, all, dt_limits.failed_telemetry.share))
            continue;
        dt_find(summary, DT_RULE_failed_telemetry,
                dt_is_share(failed, all, dt_limits.failed_telemetry.most) ? DT_MEDIUM : DT_LOW,
                NULL, "%s: %" PRIu64 " of %" PRIu64 " ended with an exception", row->name,
                row->failed, row->count);
        found++;
    }
}

/* Whether the 99th percentile is too long for this kind, whose key is a literal. */
static bool is_slow(const struct dt_named *row) {
    const int64_t high = dt_quantile_p99(&row->took), median = dt_quantile(&row->took, 0.5);

    if (!row->key || row->took.count < dt_limits.slow_telemetry.calls ||
        high < dt_limits.slow_telemetry.time)
        return false;
    return strcmp(row->key, "source") == 0 ||
           (strcmp(row->key, "route") == 0 && high / dt_limits.slow_telemetry.times >= median);
}

/* What took most of the time inside these spans; "" if nothing took `part` of it. */
static char *largest_part(const struct dt_named *row) {
    const struct dt_part *part = dt_named_largest_part(row);

    if (!part || !dt_is_share(part->ns, row->total, dt_limits.slow_telemetry.part))
        return g_strdup("");
    return g_strdup_printf("; %s of their time in %s",
                           dt_show_share((double)part->ns / (double)row->total).text,
                           part->of->name);
}

static void slow_telemetry(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_telemetry(summary);
    unsigned found = 0;

    for (unsigned i = 0; i < rows->len && found < dt_limits.slow_telemetry.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);

        if (!is_slow(row))
            continue;
        g_autofree char *part = largest_part(row);
        dt_find(summary, DT_RULE_slow_telemetry, DT_LOW, NULL,
                "%s: %" PRIu64 " calls, median %s, 99th percentile %s%s", row->name,
                row->took.count, dt_show_ns(dt_quantile(&row->took, 0.5)).text,
                dt_show_ns(dt_quantile_p99(&row->took)).text, part);
        found++;
    }
}

/* Reports one process only: the first, because processes are sorted by run time. */
static void traced(struct dt_summary *summary) {
    for (unsigned i = 0; i < summary->processes.actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(summary->processes.actors, i);
        int64_t cost = (int64_t)actor->activity->call_events * dt_limits.traced_calls.per_event;

        if (!actor->activity->ran || actor->activity->call_events < dt_limits.traced_calls.events ||
            !dt_is_share(cost, actor->activity->run, dt_limits.traced_calls.share))
            continue;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_traced_calls, DT_MEDIUM, actor,
                "%s: %" PRIu64 " calls and returns were traced in %s of run time: at %s "
                "each, tracing took %s of it",
                name, actor->activity->call_events, dt_show_ns(actor->activity->run).text,
                dt_show_ns(dt_limits.traced_calls.per_event).text,
                dt_show_share(MIN((double)cost / (double)actor->activity->run, 1)).text);
        return;
    }
}

void dt_find_in_calls(struct dt_summary *summary) {
    exceptions(summary);
    spans(summary);
    failed_telemetry(summary);
    slow_telemetry(summary);
    traced(summary);
}
