/* Calls of servers, and where messages go. */
#include <string.h>

#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"
#include "summary/sorted_rows.h"

/* All calls of a server. */
struct served {
    struct dt_actor *server;
    uint64_t count, timeouts, downs, refused;
    struct dt_quantiles took, queued, runnable, worked, deferred;
    struct served *waits_for; /* another server, for whose replies it waits most of its work */
    bool holds_up;            /* another slow server waits for this one */
};

static void served_free(void *data) {
    struct served *served = data;

    dt_quantiles_clear(&served->took);
    dt_quantiles_clear(&served->queued);
    dt_quantiles_clear(&served->runnable);
    dt_quantiles_clear(&served->deferred);
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
        served->refused += row->refused;
        dt_quantiles_merge(&served->took, &row->took);
        dt_quantiles_merge(&served->queued, &row->queued);
        dt_quantiles_merge(&served->runnable, &row->runnable);
        dt_quantiles_merge(&served->deferred, &row->deferred);
        dt_quantiles_merge(&served->worked, &row->worked);
    }
    return servers;
}

/* A server that calls another one works until the reply. */
static void note_chains(const struct dt_summary *summary, GHashTable *servers) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->server_calls);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        struct served *caller = g_hash_table_lookup(servers, row->only ? row->only : row->from);

        if (caller && row->to != caller->server && caller->worked.sum &&
            row->took.sum >= caller->worked.sum / 2)
            caller->waits_for = g_hash_table_lookup(servers, row->to);
    }
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

/* Whether this part is half of the time of all calls whose parts are known. */
static bool is_most(const struct served *served, const struct dt_quantiles *part) {
    uint64_t all =
        served->queued.sum + served->runnable.sum + served->worked.sum + served->deferred.sum;

    return all && part->sum >= all / 2;
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
        bool is_slow = served && p99 >= dt_limits.slow_server.call &&
                       !is_most(served, &served->deferred) && !is_most(served, &served->runnable);
        g_autofree char *name = dt_actor_show_where(actor);
        g_autoptr(GString) text = g_string_new(NULL);
        g_string_printf(text, "%s received %s of all messages", name, dt_show_share(share).text);
        if (p99 != DT_NO_VALUE)
            g_string_append_printf(text, "; its callers waited %s (p99)", dt_show_ns(p99).text);
        dt_find(summary, DT_RULE_busy_receiver, is_slow ? DT_HIGH : DT_LOW, actor, "%s", text->str);
    }
}

/* A statistic of the calls of a server, in total and of each part. */
struct time_of_calls {
    const char *name; /* "p99", "median", "the longest" */
    int64_t took, queued, runnable, worked, deferred;
};

static struct time_of_calls share_of(const struct served *served, const char *name, double share) {
    return (struct time_of_calls){
        name,
        dt_quantile(&served->took, share),
        dt_quantile(&served->queued, share),
        dt_quantile(&served->runnable, share),
        dt_quantile(&served->worked, share),
        dt_quantile(&served->deferred, share),
    };
}

/* The row of a server with the largest sum. */
static const struct dt_pair *largest_row(const struct dt_summary *summary,
                                         const struct served *served,
                                         uint64_t (*sum_of)(const struct dt_pair *)) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&summary->server_calls);
    const struct dt_pair *largest = NULL;

    for (unsigned i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);

        if (row->to == served->server && (!largest || sum_of(row) > sum_of(largest)))
            largest = row;
    }
    return largest;
}

static uint64_t took(const struct dt_pair *row) {
    return row->took.sum;
}

static uint64_t deferred(const struct dt_pair *row) {
    return row->deferred.sum;
}

static uint64_t refused(const struct dt_pair *row) {
    return row->refused;
}

static bool is_saturated(const struct dt_summary *summary, const struct served *served) {
    int64_t recorded = dt_recorded(summary);
    uint64_t waited = served->took.sum - served->deferred.sum;

    return dt_is_long(summary, dt_limits.saturated_server.recorded) &&
           served->took.count >= dt_limits.saturated_server.calls &&
           dt_is_share((int64_t)served->worked.sum, recorded, dt_limits.saturated_server.worked) &&
           waited / dt_limits.saturated_server.waiting >= (uint64_t)recorded &&
           !is_most(served, &served->runnable) && !is_most(served, &served->deferred);
}

/* Which callers wait most, and what of: the requests to change, and the server that takes the time.
 */
static void put_causes(const struct dt_summary *summary, GString *text,
                       const struct served *served) {
    if (is_saturated(summary, served)) {
        const struct dt_pair *row = largest_row(summary, served, took);
        g_autofree char *caller = dt_actor_show_where(row->only ? row->only : row->from);

        g_string_append_printf(text, "; longest in total: %s with %s", caller, row->example);
    }
    if (served->waits_for) {
        g_autofree char *other = dt_actor_show_where(served->waits_for->server);

        g_string_append_printf(text, "; most of its work is waiting for %s", other);
    }
}

static void put_part(GString *text, int64_t ns, const char *where) {
    if (ns > 0)
        g_string_append_printf(text, ", %s %s", dt_show_ns(ns).text, where);
}

static void add_slow(struct dt_summary *summary, const struct served *served,
                     enum dt_severity severity, const struct time_of_calls *t) {
    g_autofree char *name = dt_actor_show_where(served->server);
    g_autofree char *calls = dt_counted(served->took.count, "call");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s: callers waited %s (%s of %s)", name, dt_show_ns(t->took).text,
                    t->name, calls);
    if (t->queued != DT_NO_VALUE) {
        g_string_append_printf(text, ": %s in its mailbox", dt_show_ns(t->queued).text);
        put_part(text, t->runnable, "while it waited for a scheduler");
        g_string_append_printf(text, ", %s for its work", dt_show_ns(t->worked).text);
        put_part(text, t->deferred, "until it replied later");
        g_string_append_printf(text, " (%s of each, inferred)", t->name);
    }
    put_causes(summary, text, served);
    dt_find(summary, DT_RULE_slow_server, severity, served->server, "%s", text->str);
}

static struct time_of_calls longest_of(const struct served *served) {
    return (struct time_of_calls){
        "the longest",
        dt_quantiles_max(&served->took),
        dt_quantiles_max(&served->queued),
        dt_quantiles_max(&served->runnable),
        dt_quantiles_max(&served->worked),
        dt_quantiles_max(&served->deferred),
    };
}

/* A server that replies later, such as a pool or a long poll, is not slow: what it waits for is
   unknown. A server that waited for a scheduler is not the cause. */
static enum dt_severity severity_of(const struct served *served, const struct time_of_calls *t) {
    bool is_queue =
        t->queued != DT_NO_VALUE && t->queued / dt_limits.slow_server.queued_to_worked >= t->worked;

    if (is_most(served, &served->runnable) || (served->waits_for && served->waits_for->holds_up))
        return DT_LOW;
    return is_queue || served->holds_up ? DT_HIGH : DT_MEDIUM;
}

static struct time_of_calls usual_of(const struct served *served) {
    return served->took.count >= DT_P99_NUMBERS ? share_of(served, "p99", 0.99)
                                                : share_of(served, "median", 0.5);
}

static bool is_slow(const struct served *served) {
    return served->took.count >= dt_limits.slow_server.calls &&
           !is_most(served, &served->deferred) &&
           usual_of(served).took >= dt_limits.slow_server.call;
}

/* In a chain of slow servers the last one is the cause. The others are slow because of it. */
static void note_causes(const GPtrArray *rows) {
    for (unsigned i = 0; i < rows->len; i++) {
        const struct served *served = g_ptr_array_index(rows, i);

        if (served->waits_for && is_slow(served) && is_slow(served->waits_for))
            served->waits_for->holds_up = true;
    }
}

/* A single slow call says nothing of the others; the server may have just started. */
static bool has_slow_call(struct dt_summary *summary, const struct served *served) {
    struct time_of_calls longest = longest_of(served);

    if (longest.took < dt_limits.slow_server.single || is_most(served, &served->deferred))
        return false;
    add_slow(summary, served, DT_LOW, &longest);
    return true;
}

static void slow_servers(struct dt_summary *summary, const GPtrArray *rows) {
    uint64_t slow = 0, single = 0, most = dt_limits.slow_server.per_rule;

    note_causes(rows);
    for (unsigned i = 0; i < rows->len; i++) {
        const struct served *served = g_ptr_array_index(rows, i);

        if (slow < most && is_slow(served)) {
            struct time_of_calls usual = usual_of(served);

            add_slow(summary, served, severity_of(served, &usual), &usual);
            slow++;
        } else if (single < most && has_slow_call(summary, served)) {
            single++;
        }
    }
}

static void add_saturated(struct dt_summary *summary, const struct served *served) {
    bool is_cause = !served->waits_for || !is_saturated(summary, served->waits_for);
    double recorded = (double)dt_recorded(summary);
    g_autofree char *name = dt_actor_show_where(served->server);
    g_autofree char *calls = dt_counted(served->took.count, "call");
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(
        text, "%s worked on %s for %s of %s (inferred), while %.1f callers waited on average", name,
        calls, dt_show_share(MIN((double)served->worked.sum / recorded, 1)).text,
        dt_recorded_words(summary), (double)(served->took.sum - served->deferred.sum) / recorded);
    put_causes(summary, text, served);
    dt_find(summary, DT_RULE_saturated_server, is_cause ? DT_MEDIUM : DT_LOW, served->server, "%s",
            text->str);
}

static int longest_waits(const void *a, const void *b) {
    const struct served *x = *(struct served *const *)a, *y = *(struct served *const *)b;

    int by = dt_compare((int64_t)y->took.sum, (int64_t)x->took.sum);

    return by ? by : dt_compare((int64_t)x->server->number, (int64_t)y->server->number);
}

/* Servers whose calls are short, but too many. */
static void saturated(struct dt_summary *summary, GPtrArray *rows) {
    uint64_t found = 0;

    g_ptr_array_sort(rows, longest_waits);
    for (unsigned i = 0; i < rows->len && found < dt_limits.saturated_server.per_rule; i++) {
        const struct served *served = g_ptr_array_index(rows, i);

        if (is_slow(served) || !is_saturated(summary, served))
            continue;
        add_saturated(summary, served);
        found++;
    }
}

static bool is_locker(const struct dt_actor *server) {
    const char *name = server->process ? server->process->name : server->name;

    return name && strcmp(name, "mnesia_locker") == 0;
}

/* Mnesia's locker replies when the lock is free. Which transaction holds it is unknown. */
static void lock_waits(struct dt_summary *summary, const GPtrArray *rows) {
    int64_t recorded = dt_recorded(summary);

    for (unsigned i = 0; i < rows->len; i++) {
        const struct served *served = g_ptr_array_index(rows, i);
        uint64_t waited = served->deferred.sum;
        bool are_refused = served->refused >= dt_limits.lock_waits.refused &&
                           dt_is_share((int64_t)served->refused, (int64_t)served->count,
                                       dt_limits.lock_waits.share);

        if (!is_locker(served->server) || !dt_is_long(summary, dt_limits.lock_waits.recorded) ||
            (!are_refused && waited / dt_limits.lock_waits.waiting < (uint64_t)recorded))
            continue;
        const struct dt_pair *row = largest_row(summary, served, are_refused ? refused : deferred);
        g_autofree char *name = dt_actor_show_where(served->server);
        g_autofree char *caller = dt_actor_show_where(row->only ? row->only : row->from);
        dt_find(summary, DT_RULE_lock_waits, DT_MEDIUM, served->server,
                "%s: %.1f processes waited for locks on average (inferred), and %" PRIu64
                " of %" PRIu64 " requests made a transaction start again; most often %s, for "
                "example with %s",
                name, (double)waited / (double)recorded, served->refused, served->count, caller,
                row->example);
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

    note_chains(summary, servers);
    busiest(summary, servers);
    failures(summary, rows);
    slow_servers(summary, rows);
    saturated(summary, rows);
    lock_waits(summary, rows);
    dead(summary);
}
