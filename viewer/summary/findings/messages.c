/* Calls of gen_servers, and where messages go. */
#include "shared/show.h"
#include "summary/findings/rules.h"
#include "summary/rows.h"
#include "summary/served.h"

/* The process that most messages go to, with what its callers waited. */
static void busiest(struct dt_summary *summary, GHashTable *servers) {
    if (summary->received < (uint64_t)dt_limits.busy_receiver.messages)
        return;
    for (guint i = 0; i < summary->processes.whos->len; i++) {
        struct dt_who *who = g_ptr_array_index(summary->processes.whos, i);
        if (!dt_is_share((int64_t)who->received, (int64_t)summary->received,
                         dt_limits.busy_receiver.share))
            continue;
        double share = (double)who->received / (double)summary->received;
        const struct dt_served *served = g_hash_table_lookup(servers, who);
        int64_t p99 = served ? dt_quantile_p99(&served->took) : DT_NO_VALUE;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        g_autoptr(GString) text = g_string_new(NULL);
        g_string_printf(text, "%s: %s of all messages", name, dt_show_share(share).text);
        if (p99 != DT_NO_VALUE)
            g_string_append_printf(text, "; its callers waited %s (p99)", dt_show_ns(p99).text);
        dt_find(summary, DT_RULE_busy_receiver,
                p99 >= dt_limits.slow_server.call ? DT_HIGH : DT_LOW, who, "%s", text->str);
    }
}

/* "p99 of 494 calls"; of fewer, where that means little, the longest. */
static char *which_of(uint64_t calls) {
    if (calls == 1)
        return g_strdup("its only call");
    return g_strdup_printf("%s of %" G_GUINT64_FORMAT " calls",
                           calls >= DT_P99_NUMBERS ? "p99" : "the longest", calls);
}

static void slow_server(struct dt_summary *summary, const struct dt_served *served) {
    int64_t took = dt_quantile_high(&served->took), queued = dt_quantile_high(&served->queued);
    int64_t worked = dt_quantile_high(&served->worked);
    bool are_few = served->took.count < (uint64_t)dt_limits.slow_server.calls;
    if (took < (are_few ? dt_limits.slow_server.of_few : dt_limits.slow_server.call))
        return;
    g_autofree char *name = dt_who_show_where(&summary->whos, served->server);
    g_autofree char *which = which_of(served->took.count);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s: callers waited %s (%s)", name, dt_show_ns(took).text, which);
    if (queued != DT_NO_VALUE)
        g_string_append_printf(text, ": %s in its mailbox, %s for its work (%s of each, inferred)",
                               dt_show_ns(queued).text, dt_show_ns(worked).text,
                               served->queued.count >= DT_P99_NUMBERS ? "p99" : "the longest");
    bool is_queue =
        queued != DT_NO_VALUE && queued / dt_limits.slow_server.queued_to_worked >= worked;
    dt_find(summary, DT_RULE_slow_server,
            are_few    ? DT_LOW
            : is_queue ? DT_HIGH
                       : DT_MEDIUM,
            served->server, "%s", text->str);
}

static void timed_out(struct dt_summary *summary, const struct dt_served *served) {
    g_autofree char *name = dt_who_show_where(&summary->whos, served->server);
    g_autofree char *calls = dt_counted(served->count, "call");
    dt_find(summary, DT_RULE_timed_out_calls, DT_HIGH, served->server,
            "%s: %" G_GUINT64_FORMAT " of %s timed out (inferred)", name, served->timeouts, calls);
}

static void failed(struct dt_summary *summary, const struct dt_served *served) {
    g_autofree char *name = dt_who_show_where(&summary->whos, served->server);
    g_autofree char *calls = dt_counted(served->count, "call");
    dt_find(summary, DT_RULE_failed_calls, DT_MEDIUM, served->server,
            "%s: %" G_GUINT64_FORMAT " of %s failed: the server exited or was not there", name,
            served->downs, calls);
}

static void failures(struct dt_summary *summary, const GPtrArray *rows) {
    int64_t timeouts = 0, downs = 0;
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_served *served = g_ptr_array_index(rows, i);
        if (served->timeouts && timeouts++ < dt_limits.timed_out_calls.per_rule)
            timed_out(summary, served);
        if (served->downs && downs++ < dt_limits.failed_calls.per_rule)
            failed(summary, served);
    }
}

static void dead(struct dt_summary *summary) {
    uint64_t n = summary->dead_messages;
    if (!n)
        return;
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->dead);
    g_autoptr(GString) most = g_string_new(NULL);
    if (rows->len) {
        const struct dt_pair *row = g_ptr_array_index(rows, 0);
        g_autofree char *from = dt_who_show_where(&summary->whos, row->from);
        g_autofree char *to =
            row->to ? dt_who_show_where(&summary->whos, row->to) : g_strdup(row->text);
        if (row->count == n)
            g_string_printf(most, ", %sby %s to %s", n > 1 ? "all " : "", from, to);
        else
            g_string_printf(most, ", %" G_GUINT64_FORMAT " of them by %s to %s", row->count, from,
                            to);
    }
    g_autofree char *messages = dt_counted(n, "message");
    dt_find(summary, DT_RULE_dead_messages,
            n >= (uint64_t)dt_limits.dead_messages.many ? DT_MEDIUM : DT_LOW, NULL,
            "%s went to processes that had exited or to names that nobody had%s", messages,
            most->str);
}

void dt_find_in_messages(struct dt_summary *summary) {
    g_autoptr(GHashTable) servers = dt_served_by_server(summary);
    g_autoptr(GPtrArray) rows = dt_served_slowest_first(servers);
    busiest(summary, servers);
    failures(summary, rows);
    for (guint i = 0; i < rows->len && i < dt_limits.slow_server.per_rule; i++)
        slow_server(summary, g_ptr_array_index(rows, i));
    dead(summary);
}
