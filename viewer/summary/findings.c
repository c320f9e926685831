/* A rule is a function that adds findings; the thresholds of all rules are below. */
#include "summary/findings.h"

#include <string.h>

#include "shared/show.h"
#include "shared/texts.h"
#include "summary/rows.h"
#include "summary/served.h"

#define MS INT64_C(1000000)

static const struct {
    double busy_share;       /* of all messages, to one process */
    uint64_t busy_messages;  /* with fewer, shares mean little */
    int64_t slow_call;       /* p99 of a gen_server's calls */
    double queued_to_worked; /* requests wait so many times longer than work takes */
    uint64_t mailbox, large_mailbox;
    int64_t wait, long_wait; /* for a scheduler */
    double waiting_share;    /* of the time in which processes could run */
    int64_t collection, long_collection;
    double collecting_share; /* of a process's time on a scheduler */
    int64_t collecting;
    double running_share; /* of the recording, by one process */
    int64_t recorded;     /* shorter recordings have no shares */
    double raised_share;  /* of the calls of a function */
    uint64_t raised;
    uint64_t dead, many_dead;
    guint per_rule; /* findings */
} limits = {
    .busy_share = 0.5,
    .busy_messages = 1000,
    .slow_call = 10 * MS,
    .queued_to_worked = 2,
    .mailbox = 1000,
    .large_mailbox = 10000,
    .wait = 10 * MS,
    .long_wait = 100 * MS,
    .waiting_share = 0.3,
    .collection = 10 * MS,
    .long_collection = 100 * MS,
    .collecting_share = 0.2,
    .collecting = 10 * MS,
    .running_share = 0.9,
    .recorded = 100 * MS,
    .raised_share = 0.1,
    .raised = 10,
    .dead = 1,
    .many_dead = 100,
    .per_rule = 3,
};

const char *const dt_severity_names[] = {"high", "medium", "low"};

static void find(struct dt_summary *summary, enum dt_severity severity, const char *about,
                 struct dt_who *who, const char *format, ...) G_GNUC_PRINTF(5, 6);

static void find(struct dt_summary *summary, enum dt_severity severity, const char *about,
                 struct dt_who *who, const char *format, ...) {
    va_list args;
    va_start(args, format);
    struct dt_finding finding = {.severity = severity,
                                 .about = about,
                                 .who = dt_who_keep(who),
                                 .text = g_strdup_vprintf(format, args)};
    va_end(args);
    g_array_append_val(summary->findings, finding);
}

static const char *plural(uint64_t n) {
    return n == 1 ? "" : "s";
}

/* Behind what is a node's. */
static char *on_node(const struct dt_summary *summary, const struct dt_seen_node *node) {
    return node && dt_seen_nodes_are_several(&summary->whos.nodes)
               ? g_strdup_printf(" on %s", node->name)
               : g_strdup("");
}

/* -- The recording -------------------------------------------------------------------- */

static void lost(struct dt_summary *summary) {
    if (!summary->lost_rows)
        return;
    if (summary->lost_events)
        find(summary, DT_HIGH, "recording", NULL,
             "%s%" G_GUINT64_FORMAT
             " events were lost: counts are too low, and times can be wrong around the gaps",
             summary->lost_unknown ? "more than " : "", summary->lost_events);
    else
        find(summary, DT_HIGH, "recording", NULL,
             "events were lost, an unknown number: counts are too low, and times can be wrong "
             "around the gaps");
}

static void skipped(struct dt_summary *summary) {
    if (summary->skipped && !summary->events)
        find(summary, DT_HIGH, "recording", NULL,
             "no event of a provider that is known: %" G_GUINT64_FORMAT " were skipped",
             summary->skipped);
}

/* -- Crashes, log, monitor -------------------------------------------------------------- */

static char *kind_and_reason(struct dt_summary *summary, const struct dt_listed *crash) {
    return g_strdup_printf("%s %s", dt_who_show(dt_who_kind(&summary->whos, crash->who)),
                           crash->text);
}

/* Equal crashes are one finding: of processes with the same initial call and reason. */
static void crashes(struct dt_summary *summary) {
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint n = summary->crashes.rows->len;
    for (guint i = 0; i < n; i++) {
        char *key =
            kind_and_reason(summary, &g_array_index(summary->crashes.rows, struct dt_listed, i));
        uint64_t count = GPOINTER_TO_SIZE(g_hash_table_lookup(groups, key)) + 1;
        g_hash_table_replace(groups, key, GSIZE_TO_POINTER(count));
    }
    guint found = 0;
    for (guint i = 0; i < n && found < limits.per_rule; i++) {
        const struct dt_listed *row = &g_array_index(summary->crashes.rows, struct dt_listed, i);
        g_autofree char *key = kind_and_reason(summary, row);
        uint64_t count = GPOINTER_TO_SIZE(g_hash_table_lookup(groups, key));
        if (!count)
            continue;
        g_hash_table_remove(groups, key);
        g_autofree char *who = dt_who_show_where(&summary->whos, row->who);
        if (count == 1)
            find(summary, DT_HIGH, "exits", row->who, "%s crashed: %s", who, row->text);
        else
            find(summary, DT_HIGH, "exits", row->who,
                 "%s and %" G_GUINT64_FORMAT " more%s crashed: %s", who, count - 1,
                 *row->who->initial ? " with the same initial call" : "", row->text);
        found++;
    }
    guint more = g_hash_table_size(groups);
    if (more)
        find(summary, DT_MEDIUM, "exits", NULL, "%u more kind%s of crashes", more, plural(more));
}

/* The process that logged the most errors, and how many. */
static struct dt_who *loudest(const struct dt_summary *summary, uint64_t *lines) {
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL);
    struct dt_who *loudest = NULL;
    *lines = 0;
    for (guint i = 0; i < summary->log.rows->len; i++) {
        const struct dt_listed *row = &g_array_index(summary->log.rows, struct dt_listed, i);
        if (!row->is_error || !row->who)
            continue;
        uint64_t count = GPOINTER_TO_SIZE(g_hash_table_lookup(counts, row->who)) + 1;
        g_hash_table_insert(counts, row->who, GSIZE_TO_POINTER(count));
        if (count > *lines) {
            *lines = count;
            loudest = row->who;
        }
    }
    return loudest;
}

static void logged(struct dt_summary *summary) {
    if (!summary->log_errors)
        return;
    uint64_t lines;
    struct dt_who *who = loudest(summary, &lines);
    g_autofree char *name = dt_who_show_where(&summary->whos, who);
    g_autoptr(GString) by = g_string_new(NULL);
    if (summary->log_errors == 1 && who)
        g_string_printf(by, ", by %s", name);
    else if (lines == summary->log_errors)
        g_string_printf(by, ", all by %s", name);
    else if (lines > 1 && !summary->log.left_out)
        g_string_printf(by, ", %" G_GUINT64_FORMAT " of them by %s", lines, name);
    find(summary, DT_MEDIUM, "log", lines == summary->log_errors ? who : NULL,
         "the log has %" G_GUINT64_FORMAT " line%s of level error or above%s", summary->log_errors,
         plural(summary->log_errors), by->str);
}

static gint by_count(gconstpointer a, gconstpointer b) {
    const struct dt_named *x = *(struct dt_named *const *)a, *y = *(struct dt_named *const *)b;
    int by = dt_compare((int64_t)y->count, (int64_t)x->count);
    return by ? by : strcmp(x->name, y->name);
}

static void monitored(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_names_sorted(&summary->monitor, by_count);
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        find(summary, DT_MEDIUM, "recording", NULL, "%s reported: %s, %" G_GUINT64_FORMAT " time%s",
             *dt_seen_node_name(row->node) ? row->node->name : "the VM", row->name, row->count,
             plural(row->count));
    }
}

/* -- Messages --------------------------------------------------------------------------- */

/* The process that most messages go to, with what its callers waited. */
static void busiest(struct dt_summary *summary, GHashTable *servers) {
    if (summary->received < limits.busy_messages)
        return;
    for (guint i = 0; i < summary->processes.whos->len; i++) {
        struct dt_who *who = g_ptr_array_index(summary->processes.whos, i);
        double share = (double)who->received / (double)summary->received;
        if (share < limits.busy_share)
            continue;
        const struct dt_served *served = g_hash_table_lookup(servers, who);
        int64_t p99 = served ? dt_quantile(&served->took, 0.99) : DT_NO_VALUE;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        g_autoptr(GString) text = g_string_new(NULL);
        g_string_printf(text, "%s: %s of all messages", name, dt_show_share(share).text);
        if (p99 != DT_NO_VALUE)
            g_string_append_printf(text, "; its callers waited %s (p99)", dt_show_ns(p99).text);
        find(summary, p99 >= limits.slow_call ? DT_HIGH : DT_MEDIUM, "talks", who, "%s", text->str);
    }
}

static void slow_server(struct dt_summary *summary, const struct dt_served *served) {
    int64_t p99 = dt_quantile(&served->took, 0.99), queued = dt_quantile(&served->queued, 0.99);
    int64_t worked = dt_quantile(&served->worked, 0.99);
    if (p99 < limits.slow_call)
        return;
    g_autofree char *name = dt_who_show_where(&summary->whos, served->server);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s: callers waited %s (p99 of %" G_GUINT64_FORMAT " call%s)", name,
                    dt_show_ns(p99).text, served->took.count, plural(served->took.count));
    bool is_queue =
        queued != DT_NO_VALUE && (double)queued >= limits.queued_to_worked * (double)worked;
    if (queued != DT_NO_VALUE)
        g_string_append_printf(text, ": %s in its mailbox, %s for its work (p99 of each, inferred)",
                               dt_show_ns(queued).text, dt_show_ns(worked).text);
    find(summary, is_queue ? DT_HIGH : DT_MEDIUM, "server_calls", served->server, "%s", text->str);
}

static void failed_calls(struct dt_summary *summary, const struct dt_served *served) {
    g_autofree char *name = dt_who_show_where(&summary->whos, served->server);
    if (served->timeouts)
        find(summary, DT_HIGH, "server_calls", served->server,
             "%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " call%s timed out (inferred)", name,
             served->timeouts, served->count, plural(served->count));
    if (served->downs)
        find(summary, DT_MEDIUM, "server_calls", served->server,
             "%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
             " call%s failed: the server exited or was not there",
             name, served->downs, served->count, plural(served->count));
}

static void servers(struct dt_summary *summary) {
    g_autoptr(GHashTable) servers = dt_served_by_server(summary);
    busiest(summary, servers);
    g_autoptr(GPtrArray) rows = dt_served_slowest_first(servers);
    for (guint i = 0; i < rows->len; i++)
        failed_calls(summary, g_ptr_array_index(rows, i));
    for (guint i = 0; i < rows->len && i < limits.per_rule; i++)
        slow_server(summary, g_ptr_array_index(rows, i));
}

static void dead(struct dt_summary *summary) {
    uint64_t n = summary->dead_messages;
    if (n < limits.dead)
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
    find(summary, n >= limits.many_dead ? DT_MEDIUM : DT_LOW, "dead", NULL,
         "%" G_GUINT64_FORMAT " message%s went to processes that had exited or to names that "
         "nobody had%s",
         n, plural(n), most->str);
}

/* -- Processes -------------------------------------------------------------------------- */

static void mailboxes(struct dt_summary *summary) {
    g_autoptr(GPtrArray) whos = dt_kept_copy(&summary->processes);
    dt_kept_sort(whos, dt_kept_by_mailbox);
    for (guint i = 0; i < whos->len && i < limits.per_rule; i++) {
        struct dt_who *who = g_ptr_array_index(whos, i);
        if (who->mailbox_max < limits.mailbox)
            break;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        find(summary, who->mailbox_max >= limits.large_mailbox ? DT_HIGH : DT_MEDIUM, "processes",
             who, "%s: up to %" G_GUINT64_FORMAT " messages on their way to it at once", name,
             who->mailbox_max);
    }
}

static int64_t sum_of(const struct dt_summary *summary, const struct dt_seen_node *node,
                      enum dt_load_number number) {
    const int64_t *load = dt_load_of(&summary->load, node, number);
    int64_t sum = 0;
    for (unsigned n = 0; n < DT_STEPS; n++)
        sum += load[n];
    return sum;
}

static void waits(struct dt_summary *summary) {
    if (!summary->waits.rows->len)
        return;
    const struct dt_listed *row = &g_array_index(summary->waits.rows, struct dt_listed, 0);
    if (row->ns >= limits.wait) {
        g_autofree char *name = dt_who_show_where(&summary->whos, row->who);
        find(summary, row->ns >= limits.long_wait ? DT_MEDIUM : DT_LOW, "waits", row->who,
             "%s waited %s for a scheduler (inferred), the longest such wait", name,
             dt_show_ns(row->ns).text);
    }
    int64_t ran = 0, waited = 0;
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);
    for (guint i = 0; i < nodes->len; i++) {
        ran += sum_of(summary, g_ptr_array_index(nodes, i), DT_LOAD_RUN);
        waited += sum_of(summary, g_ptr_array_index(nodes, i), DT_LOAD_RUNNABLE);
    }
    double share = ran + waited > 0 ? (double)waited / (double)(ran + waited) : 0;
    if (share >= limits.waiting_share && waited >= limits.wait)
        find(summary, DT_MEDIUM, "waits", NULL,
             "processes that could run spent %s of that time waiting for a scheduler (inferred): "
             "the schedulers or the CPUs are busy",
             dt_show_share(share).text);
}

static void collections(struct dt_summary *summary) {
    const struct dt_listed *row = NULL;
    for (guint i = 0; i < summary->collections.rows->len && (!row || row->is_stretched); i++)
        row = &g_array_index(summary->collections.rows, struct dt_listed, i);
    /* A stretched one is no pause of the collector. */
    if (row && !row->is_stretched) {
        g_autofree char *name = dt_who_show_where(&summary->whos, row->who);
        if (row->ns >= limits.collection)
            find(summary, row->ns >= limits.long_collection ? DT_HIGH : DT_MEDIUM, "collections",
                 row->who, "%s: a %s garbage collection took %s, the longest", name,
                 row->is_major ? "major" : "minor", dt_show_ns(row->ns).text);
    }
    guint found = 0;
    for (guint i = 0; i < summary->processes.whos->len && found < limits.per_rule; i++) {
        struct dt_who *who = g_ptr_array_index(summary->processes.whos, i);
        int64_t all = who->run + who->collecting;
        double share = all > 0 ? (double)who->collecting / (double)all : 0;
        if (!who->ran || who->collecting < limits.collecting || share < limits.collecting_share)
            continue;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        find(summary, DT_MEDIUM, "processes", who,
             "%s: %s of its time on a scheduler is garbage collection (%s)", name,
             dt_show_share(share).text, dt_show_ns(who->collecting).text);
        found++;
    }
}

static void runs(struct dt_summary *summary) {
    int64_t recorded = summary->period.end - summary->period.begin;
    if (recorded < limits.recorded)
        return;
    guint found = 0;
    for (guint i = 0; i < summary->processes.whos->len && found < limits.per_rule; i++) {
        struct dt_who *who = g_ptr_array_index(summary->processes.whos, i);
        double share = (double)(who->run + who->collecting) / (double)recorded;
        if (share < limits.running_share)
            continue;
        g_autofree char *name = dt_who_show_where(&summary->whos, who);
        find(summary, DT_MEDIUM, "processes", who, "%s ran for %s of the recording", name,
             dt_show_share(share).text);
        found++;
    }
}

/* -- Calls and spans -------------------------------------------------------------------- */

static void raised(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_calls(summary);
    guint found = 0;
    for (guint i = 0; i < rows->len && found < limits.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        if (row->failed < limits.raised ||
            (double)row->failed < limits.raised_share * (double)row->count)
            continue;
        g_autofree char *where = on_node(summary, row->node);
        find(summary, DT_LOW, "calls", NULL,
             "%s%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " calls ended with an exception",
             row->name, where, row->failed, row->count);
        found++;
    }
}

static void spans(struct dt_summary *summary) {
    g_autoptr(GPtrArray) rows = dt_rows_spans(summary);
    guint found = 0;
    for (guint i = 0; i < rows->len && found < limits.per_rule; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        if (!row->failed)
            continue;
        find(summary, DT_MEDIUM, "spans", NULL,
             "span %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " ended with an exception",
             row->name, row->failed, row->count);
        found++;
    }
}

/* In the order in which findings of the same severity are shown. */
static void (*const rules[])(struct dt_summary *) = {
    lost, skipped, crashes, servers, mailboxes, collections, waits,
    runs, spans,   dead,    logged,  monitored, raised,
};

/* Sorted by severity; glib's sort of arrays keeps the order of equal ones. */
static gint by_severity(gconstpointer a, gconstpointer b) {
    const struct dt_finding *x = a, *y = b;
    return (int)x->severity - (int)y->severity;
}

void dt_summary_find(struct dt_summary *summary) {
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        rules[i](summary);
    g_array_sort(summary->findings, by_severity);
}
