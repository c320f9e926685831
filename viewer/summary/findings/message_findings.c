/* Calls of gen_servers, and where messages go. */
#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* All calls of a gen_server. */
struct served {
    struct dt_actor *server;
    uint64_t count, timeouts, downs;
    struct dt_quantiles took, queued, worked;
};

static void served_free(void *data) {
    struct served *served = data;

    dt_quantiles_clear(&served->took);
    dt_quantiles_clear(&served->queued);
    dt_quantiles_clear(&served->worked);
    g_free(served);
}

/* struct dt_actor -> struct served. */
static GHashTable *served_by_server(const struct dt_summary *summary) {
    GHashTable *servers = g_hash_table_new_full(NULL, NULL, NULL, served_free);
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->server_calls);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        struct served *served = g_hash_table_lookup(servers, row->to);

        if (!served) {
            served = g_new0(struct served, 1);
            served->server = row->to;
            g_hash_table_insert(servers, row->to, served);
        }
        served->count += row->count;
        served->timeouts += row->timeouts;
        served->downs += row->downs;
        dt_quantiles_merge(&served->took, &row->took);
        dt_quantiles_merge(&served->queued, &row->queued);
        dt_quantiles_merge(&served->worked, &row->worked);
    }
    return servers;
}

static int slowest(const void *a, const void *b) {
    const struct served *x = *(struct served *const *)a, *y = *(struct served *const *)b;
    int by = dt_compare(dt_quantile_high(&y->took), dt_quantile_high(&x->took));

    return by ? by : dt_compare((int64_t)x->server->number, (int64_t)y->server->number);
}

/* By the 99th percentile, or the longest of few calls. */
static GPtrArray *slowest_first(GHashTable *servers) {
    GPtrArray *rows = dt_rows_of(servers);

    g_ptr_array_sort(rows, slowest);
    return rows;
}

/* The process that most messages go to, and how long its callers waited. Some messages that were
   sent are not known to have reached a process. */
static void busiest(struct dt_summary *summary, GHashTable *servers) {
    uint64_t all = MAX(summary->reached, summary->sent);

    if (all < dt_limits.busy_receiver.messages)
        return;
    for (unsigned i = 0; i < summary->processes.actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(summary->processes.actors, i);

        if (!dt_is_share((int64_t)actor->activity->reached, (int64_t)all,
                         dt_limits.busy_receiver.share))
            continue;
        double share = (double)actor->activity->reached / (double)all;
        const struct served *served = g_hash_table_lookup(servers, actor);
        int64_t p99 = served ? dt_quantile_p99(&served->took) : DT_NO_VALUE;
        g_autofree char *name = dt_actor_show_where(actor);
        g_autoptr(GString) text = g_string_new(NULL);
        g_string_printf(text, "%s received %s of all messages", name, dt_show_share(share).text);
        if (p99 != DT_NO_VALUE)
            g_string_append_printf(text, "; its callers waited %s (p99)", dt_show_ns(p99).text);
        dt_find(summary, DT_RULE_busy_receiver,
                p99 >= dt_limits.slow_server.call ? DT_HIGH : DT_LOW, actor, "%s", text->str);
    }
}

/* A statistic of the calls of a server: in total, in the mailbox, at work. */
struct time_of_calls {
    const char *name; /* "p99", "median", "the longest" */
    int64_t took, queued, worked;
};

static struct time_of_calls share_of(const struct served *served, const char *name, double share) {
    return (struct time_of_calls){name, dt_quantile(&served->took, share),
                                  dt_quantile(&served->queued, share),
                                  dt_quantile(&served->worked, share)};
}

static void add_slow(struct dt_summary *summary, const struct served *served,
                     enum dt_severity severity, const struct time_of_calls *t) {
    g_autofree char *name = dt_actor_show_where(served->server);
    g_autofree char *calls = dt_counted(served->took.count, "call");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s: callers waited %s (%s of %s)", name, dt_show_ns(t->took).text,
                    t->name, calls);
    if (t->queued != DT_NO_VALUE)
        g_string_append_printf(text, ": %s in its mailbox, %s for its work (%s of each, inferred)",
                               dt_show_ns(t->queued).text, dt_show_ns(t->worked).text, t->name);
    dt_find(summary, DT_RULE_slow_server, severity, served->server, "%s", text->str);
}

static struct time_of_calls longest_of(const struct served *served) {
    return (struct time_of_calls){"the longest", dt_quantiles_max(&served->took),
                                  dt_quantiles_max(&served->queued),
                                  dt_quantiles_max(&served->worked)};
}

static bool is_slow(struct dt_summary *summary, const struct served *served) {
    if (served->took.count < dt_limits.slow_server.calls)
        return false;
    struct time_of_calls usual = served->took.count >= DT_P99_NUMBERS
                                     ? share_of(served, "p99", 0.99)
                                     : share_of(served, "median", 0.5);
    if (usual.took < dt_limits.slow_server.call)
        return false;
    bool is_queue = usual.queued != DT_NO_VALUE &&
                    usual.queued / dt_limits.slow_server.queued_to_worked >= usual.worked;
    add_slow(summary, served, is_queue ? DT_HIGH : DT_MEDIUM, &usual);
    return true;
}

/* A single slow call says nothing of the others; the server may have just started. */
static bool has_slow_call(struct dt_summary *summary, const struct served *served) {
    struct time_of_calls longest = longest_of(served);

    if (longest.took < dt_limits.slow_server.single)
        return false;
    add_slow(summary, served, DT_LOW, &longest);
    return true;
}

static void slow_servers(struct dt_summary *summary, const GPtrArray *rows) {
    uint64_t slow = 0, single = 0, most = dt_limits.slow_server.per_rule;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct served *served = g_ptr_array_index(rows, i);

        if (slow < most && is_slow(summary, served))
            slow++;
        else if (single < most && has_slow_call(summary, served))
            single++;
    }
}

static void timed_out(struct dt_summary *summary, const struct served *served) {
    g_autofree char *name = dt_actor_show_where(served->server);
    g_autofree char *calls = dt_counted(served->count, "call");

    dt_find(summary, DT_RULE_timed_out_calls, DT_HIGH, served->server,
            "%s: %" PRIu64 " of %s timed out (inferred)", name, served->timeouts, calls);
}

static void failed(struct dt_summary *summary, const struct served *served) {
    g_autofree char *name = dt_actor_show_where(served->server);
    g_autofree char *calls = dt_counted(served->count, "call");

    dt_find(summary, DT_RULE_failed_calls, DT_MEDIUM, served->server,
            "%s: %" PRIu64 " of %s failed: the server exited or did not exist", name, served->downs,
            calls);
}

static void failures(struct dt_summary *summary, const GPtrArray *rows) {
    unsigned timeouts = 0, downs = 0;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct served *served = g_ptr_array_index(rows, i);

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
        g_autofree char *from = dt_actor_show_where(row->from);
        g_autofree char *to = row->to ? dt_actor_show_where(row->to) : g_strdup(row->text);

        if (row->count == n)
            g_string_printf(most, ", %sby %s to %s", n > 1 ? "all " : "", from, to);
        else
            g_string_printf(most, ", %" PRIu64 " of them by %s to %s", row->count, from, to);
    }
    g_autofree char *messages = dt_counted(n, "message");
    dt_find(summary, DT_RULE_dead_messages, n >= dt_limits.dead_messages.many ? DT_MEDIUM : DT_LOW,
            NULL, "%s went to processes that had exited or to unregistered names%s", messages,
            most->str);
}

void dt_find_in_messages(struct dt_summary *summary) {
    g_autoptr(GHashTable) servers = served_by_server(summary);
    g_autoptr(GPtrArray) rows = slowest_first(servers);

    busiest(summary, servers);
    failures(summary, rows);
    slow_servers(summary, rows);
    dead(summary);
}
