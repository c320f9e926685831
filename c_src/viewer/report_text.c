#include <string.h>

#include "viewer/report_columns.h"
#include "viewer/report_parts.h"

enum { BYTES_PER_WORD = 8 };

#define NAMES(...)                                                                                 \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* A line of a text of the recording, indented and folded at DT_COLUMNS. */
static void line(GString *to, const char *prefix, const char *text) {
    g_autoptr(GString) escaped = g_string_new(prefix);
    dt_columns_escape(escaped, text);
    const char *rest = escaped->str;
    glong room = DT_COLUMNS;
    while (g_utf8_strlen(rest, -1) > room) {
        const char *end = g_utf8_offset_to_pointer(rest, room);
        const char *space = end;
        while (space > rest && *space != ' ')
            space--;
        if (space - rest > room / 2)
            end = space;
        g_string_append_len(to, rest, end - rest);
        g_string_append_printf(to, "\n%*s", (int)strlen(prefix), "");
        rest = *end == ' ' ? end + 1 : end;
        room = DT_COLUMNS - (glong)strlen(prefix);
    }
    g_string_append_printf(to, "%s\n", rest);
}

static void title(GString *to, const char *text, guint rows, unsigned top) {
    g_string_append_printf(to, "\n%s", text);
    if (rows > top)
        g_string_append_printf(to, " (%u of %u)", top, rows);
    g_string_append(to, "\n");
}

static void cell_ns(struct dt_columns *c, int64_t ns) {
    char text[32];
    dt_show_ns(text, sizeof text, ns);
    dt_columns_text(c, text);
}

static void cell_bytes(struct dt_columns *c, uint64_t bytes) {
    char text[32];
    dt_show_bytes(text, sizeof text, bytes);
    dt_columns_text(c, text);
}

static void cell_words(struct dt_columns *c, uint64_t words) {
    cell_bytes(c, words * BYTES_PER_WORD);
}

static void cell_number(struct dt_columns *c, int64_t number) {
    if (number == DT_NO_VALUE)
        dt_columns_text(c, "");
    else
        dt_columns_printf(c, "%" G_GINT64_FORMAT, number);
}

static void cell_count(struct dt_columns *c, uint64_t number) {
    dt_columns_printf(c, "%" G_GUINT64_FORMAT, number);
}

/* What is seldom: the table has a column for it if a row has some. */
static void cell_some(struct dt_columns *c, uint64_t number) {
    if (number)
        cell_count(c, number);
    else
        dt_columns_text(c, "");
}

/* A time as seconds since the recording's begin. */
static void cell_time(struct dt_columns *c, const struct dt_report *r, int64_t time) {
    dt_columns_printf(c, "%.6f", (double)(time - r->begin) / 1e9);
}

/* The number of its node, where there are several. */
static void cell_node(struct dt_columns *c, const struct dt_report *r,
                      const struct dt_seen_node *node) {
    if (node && dt_report_has_nodes(r))
        dt_columns_printf(c, "%u", node->number);
    else
        dt_columns_text(c, "");
}

static void cell_who(struct dt_columns *c, const struct dt_who *who) {
    g_autofree char *shown = dt_show_who(who);
    dt_columns_text(c, shown);
}

/* Both are of one node. */
static void cells_pair(struct dt_columns *c, const struct dt_report *r, const struct dt_pair *row) {
    const struct dt_who *known = row->from ? row->from : row->to;
    cell_node(c, r, known ? known->node : NULL);
    cell_who(c, row->from);
    if (row->to)
        cell_who(c, row->to);
    else
        dt_columns_text(c, row->text ? row->text : "unknown");
}

/* Where many columns leave little room: the name alone, if it has one. */
static void cell_short(struct dt_columns *c, const struct dt_who *who) {
    g_autofree char *shown = dt_show_who(who);
    dt_columns_text(c, who && who->name && *who->name ? who->name : shown);
}

/* Beside a column with the initial call. */
static void cell_named(struct dt_columns *c, const struct dt_who *who) {
    const char *other = *who->name ? who->name : who->label;
    g_autofree char *text = g_strdup_printf("%s%s%s", who->pid, *other ? " " : "", other);
    dt_columns_text(c, text);
}

/* -- The recording ---------------------------------------------------------------------- */

static void nodes(GString *to, const struct dt_report *r) {
    struct dt_columns *c =
        dt_columns_new(NAMES("", "<node", "<host", "os pid", "<OTP", "processes", "seconds"));
    for (guint i = 0; i < r->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(r->nodes, i);
        if (!node)
            continue;
        cell_node(c, r, node);
        dt_columns_text(c, node->name);
        dt_columns_text(c, node->hostname);
        cell_number(c, node->os_pid);
        dt_columns_text(c, node->otp);
        cell_count(c, node->processes);
        dt_columns_printf(c, "%.3f", (double)(node->last - node->first) / 1e9);
    }
    dt_columns_end(c, to);
}

static void recording(GString *to, const struct dt_report *r) {
    double seconds = r->begin == DT_NO_VALUE ? 0 : (double)(r->end - r->begin) / 1e9;
    g_string_append_printf(to, "Recording: %" G_GUINT64_FORMAT " events in %.3f s", r->events,
                           seconds);
    if (r->skipped)
        g_string_append_printf(to, ", %" G_GUINT64_FORMAT " others skipped", r->skipped);
    g_string_append(to, r->lost_rows ? "; events were lost\n" : ", none lost\n");
    g_autoptr(GString) kinds = g_string_new(NULL);
    for (unsigned i = 0; i < DT_TOLD; i++)
        if (r->told & 1U << i)
            g_string_append_printf(kinds, "%s%s", kinds->len ? ", " : "", dt_told_words[i]);
    line(to, "Recorded: ", kinds->len ? kinds->str : "nothing that this report shows");
    g_string_append_c(to, '\n');
    if (r->nodes->len)
        nodes(to, r);
}

static void findings(GString *to, const struct dt_report *r) {
    if (!r->findings->len) {
        g_string_append(to, "Findings: none\n");
        return;
    }
    g_string_append(to, "Findings\n");
    for (guint i = 0; i < r->findings->len; i++) {
        const struct dt_finding *finding = &g_array_index(r->findings, struct dt_finding, i);
        char prefix[16];
        g_snprintf(prefix, sizeof prefix, "  %-8s", dt_severity_names[finding->severity]);
        line(to, prefix, finding->text);
    }
    g_string_append_c(to, '\n');
}

/* -- Processes -------------------------------------------------------------------------- */

static int64_t run(const struct dt_who *who) {
    return dt_who_ns(who, DT_TOLD_SCHEDULING, who->run);
}

static int64_t messages(const struct dt_who *who) {
    return (int64_t)(who->sent + who->received);
}

static int64_t collecting(const struct dt_who *who) {
    return dt_who_ns(who, DT_TOLD_COLLECTIONS, who->collecting);
}

static int64_t longest_wait(const struct dt_who *who) {
    return dt_who_ns(who, DT_TOLD_SCHEDULING, who->longest_wait);
}

static void cells_run(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, run(who));
}

static void cells_runnable(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
    cell_ns(c, longest_wait(who));
}

static void cells_collecting(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, collecting(who));
    cell_number(c, dt_who_number(who, DT_TOLD_COLLECTIONS, who->collections));
}

static void cells_messages(struct dt_columns *c, const struct dt_who *who) {
    bool has_both = who->node && who->node->told & 1U << DT_TOLD_SENDS;
    cell_number(c, dt_who_number(who, DT_TOLD_SENDS, who->sent));
    cell_number(c, dt_who_number(who, DT_TOLD_DELIVERIES, who->received));
    cell_number(c,
                has_both ? dt_who_number(who, DT_TOLD_DELIVERIES, who->mailbox_max) : DT_NO_VALUE);
}

static void cells_all(struct dt_columns *c, const struct dt_who *who) {
    cells_run(c, who);
    cells_runnable(c, who);
    cells_collecting(c, who);
    cells_messages(c, who);
}

static void cells_collecting_run(struct dt_columns *c, const struct dt_who *who) {
    cells_collecting(c, who);
    cells_run(c, who);
}

static void cells_wait(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, longest_wait(who));
    cell_ns(c, dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
    cells_run(c, who);
}

#define PROCESS_NAMES(...) NAMES("node", "<process", "~initial call", __VA_ARGS__)

/* A table of processes, ordered by one of their numbers. */
static const struct order {
    const char *title;
    int64_t (*value)(const struct dt_who *who);
    const char *const *names;
    void (*cells)(struct dt_columns *c, const struct dt_who *who);
} orders[] = {
    {"Processes by run time", run,
     PROCESS_NAMES("ran", "runnable", "longest", "collected", "GCs", "sent", "received", "mailbox"),
     cells_all},
    {"Processes by messages sent and received", messages,
     PROCESS_NAMES("sent", "received", "mailbox"), cells_messages},
    {"Processes by time of garbage collection", collecting,
     PROCESS_NAMES("collected", "GCs", "ran"), cells_collecting_run},
    {"Processes by their longest wait for a scheduler (inferred)", longest_wait,
     PROCESS_NAMES("longest", "runnable", "ran"), cells_wait},
};

static gint by_value(gconstpointer a, gconstpointer b, gpointer by) {
    const struct dt_who *x = *(struct dt_who *const *)a, *y = *(struct dt_who *const *)b;
    const struct order *order = by;
    int64_t p = order->value(x), q = order->value(y);
    if (p != q)
        return p < q ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void processes(GString *to, const struct dt_report *r, const struct order *order,
                      unsigned top) {
    g_autoptr(GPtrArray) whos = dt_kept_copy(&r->processes);
    g_ptr_array_sort_with_data(whos, by_value, (gpointer)order);
    guint n = 0;
    while (n < whos->len && order->value(g_ptr_array_index(whos, n)) > 0)
        n++;
    if (!n)
        return;
    title(to, order->title, n, top);
    struct dt_columns *c = dt_columns_new(order->names);
    for (guint i = 0; i < n && i < top; i++) {
        const struct dt_who *who = g_ptr_array_index(whos, i);
        cell_node(c, r, who->node);
        cell_named(c, who);
        dt_columns_text(c, who->initial);
        order->cells(c, who);
    }
    dt_columns_end(c, to);
}

static void others(GString *to, const struct dt_report *r) {
    const struct dt_kept *kept = &r->processes;
    if (!kept->left_out)
        return;
    char ran[32], collected[32];
    dt_show_ns(ran, sizeof ran, kept->run);
    dt_show_ns(collected, sizeof collected, kept->collecting);
    g_string_append_printf(to,
                           "\nOther processes, first by none of these: %" G_GUINT64_FORMAT
                           ". Together they ran %s, collected %s, sent %" G_GUINT64_FORMAT
                           " and received %" G_GUINT64_FORMAT " messages.\n",
                           kept->left_out, ran, collected, kept->sent, kept->received);
}

static gint by_traffic(gconstpointer a, gconstpointer b) {
    const struct dt_who *x = *(struct dt_who *const *)a, *y = *(struct dt_who *const *)b;
    int64_t p = messages(x), q = messages(y);
    if (p != q)
        return p < q ? 1 : -1;
    return x->run < y->run ? 1 : x->run > y->run ? -1 : 0;
}

static void ports(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) ports = dt_kept_copy(&r->ports);
    g_ptr_array_sort(ports, by_traffic);
    guint n = ports->len;
    if (!n)
        return;
    title(to, "Ports by traffic", n, top);
    struct dt_columns *c = dt_columns_new(
        NAMES("node", "<port", "<owner", "messages to it", "from it", "written", "ran"));
    for (guint i = 0; i < n && i < top; i++) {
        const struct dt_who *port = g_ptr_array_index(ports, i);
        cell_node(c, r, port->node);
        cell_who(c, port);
        cell_who(c, port->parent);
        cell_number(c, dt_who_number(port, DT_TOLD_DELIVERIES, port->received));
        cell_number(c, dt_who_number(port, DT_TOLD_SENDS, port->sent));
        if (dt_who_number(port, DT_TOLD_OUTPUT, port->bytes_out) == DT_NO_VALUE)
            dt_columns_text(c, "");
        else
            cell_bytes(c, port->bytes_out);
        cell_ns(c, dt_who_ns(port, DT_TOLD_SCHEDULING, port->run));
    }
    dt_columns_end(c, to);
}

/* -- Calls ------------------------------------------------------------------------------ */

static void cell_quantiles(struct dt_columns *c, const struct dt_quantiles *q) {
    cell_ns(c, dt_quantile(q, 0.5));
    cell_ns(c, dt_quantile(q, 0.99));
    cell_ns(c, dt_quantiles_max(q));
}

static void server_calls(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_server_calls(r);
    if (!rows->len)
        return;
    title(to, "Calls of gen_servers, slowest first (in the mailbox and at work: p99, inferred)",
          rows->len, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("node", "<caller", "<server", "~request", "calls", "p50", "p99", "max",
                             "mailbox", "work", "timeouts", "failed"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cell_node(c, r, row->to ? row->to->node : NULL);
        cell_short(c, row->only ? row->only : row->from);
        cell_short(c, row->to);
        dt_columns_text(c, row->text);
        cell_count(c, row->count);
        cell_quantiles(c, &row->took);
        cell_ns(c, dt_quantile(&row->queued, 0.99));
        cell_ns(c, dt_quantile(&row->worked, 0.99));
        cell_some(c, row->timeouts);
        cell_some(c, row->downs);
    }
    dt_columns_end(c, to);
}

static void calls(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_calls(r);
    if (!rows->len)
        return;
    title(to, "Functions by total time", rows->len, top);
    struct dt_columns *c = dt_columns_new(
        NAMES("node", "<function", "calls", "total", "own", "p50", "p99", "max", "exceptions"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        cell_node(c, r, row->node);
        dt_columns_text(c, row->name);
        cell_count(c, row->count);
        cell_ns(c, row->measured ? row->total : DT_NO_VALUE);
        cell_ns(c, row->measured ? row->own : DT_NO_VALUE);
        cell_quantiles(c, &row->took);
        cell_some(c, row->failed);
    }
    dt_columns_end(c, to);
}

static void spans(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_spans(r);
    if (!rows->len)
        return;
    title(to, "Spans by total time", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("<span", "number", "p50", "p99", "max", "failed"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        dt_columns_text(c, row->name);
        cell_count(c, row->count);
        cell_quantiles(c, &row->took);
        cell_some(c, row->failed);
    }
    dt_columns_end(c, to);
}

/* -- Messages --------------------------------------------------------------------------- */

static void talks(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->talks);
    if (!rows->len)
        return;
    title(to, "Messages by sender and receiver", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("node", "<from", "<to", "messages", "inferred"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cells_pair(c, r, row);
        cell_count(c, row->count);
        cell_some(c, row->inferred);
    }
    dt_columns_end(c, to);
}

static void dead(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->dead);
    if (!rows->len)
        return;
    title(to, "Messages to the dead: exited processes, names that nobody had", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("node", "<from", "<to", "messages", "~example"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cells_pair(c, r, row);
        cell_count(c, row->count);
        dt_columns_text(c, row->example);
    }
    dt_columns_end(c, to);
}

/* -- Lists ------------------------------------------------------------------------------ */

static void crashes(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->crashes.rows;
    if (!rows->len)
        return;
    title(to, "Crashes", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("at s", "node", "<process", "~reason", "~linked"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_node(c, r, row->node);
        cell_who(c, row->who);
        dt_columns_text(c, row->text);
        g_autoptr(GString) linked = g_string_new(NULL);
        for (guint n = 0; n < row->linked->len; n++) {
            g_autofree char *shown = dt_show_who(g_ptr_array_index(row->linked, n));
            g_string_append_printf(linked, "%s%s", n ? ", " : "", shown);
        }
        dt_columns_text(c, linked->str);
    }
    dt_columns_end(c, to);
}

static void waits(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->waits.rows;
    if (!rows->len)
        return;
    title(to, "Longest waits for a scheduler (inferred)", rows->len, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("at s", "waited", "node", "<process", "~stopped in"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_ns(c, row->ns);
        cell_node(c, r, row->node);
        cell_who(c, row->who);
        dt_columns_text(c, row->text);
    }
    dt_columns_end(c, to);
}

static void collections(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->collections.rows;
    if (!rows->len)
        return;
    title(to, "Longest garbage collections", rows->len, top);
    struct dt_columns *c = dt_columns_new(
        NAMES("at s", "took", "<kind", "reclaimed", "heap after", "node", "<process"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_ns(c, row->ns);
        dt_columns_text(c, row->is_major ? "major" : "minor");
        cell_words(c, row->reclaimed);
        cell_words(c, row->heap);
        cell_node(c, r, row->node);
        cell_who(c, row->who);
    }
    dt_columns_end(c, to);
}

static void log_lines(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->log.rows;
    if (!rows->len)
        return;
    title(to, "Log", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("at s", "<level", "node", "<process", "~text"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        dt_columns_text(c, row->word);
        cell_node(c, r, row->node);
        cell_who(c, row->who);
        dt_columns_text(c, row->text);
    }
    dt_columns_end(c, to);
}

static bool is_of_memory(const char *unit) {
    return strcmp(unit, "words") == 0 || strcmp(unit, "bytes") == 0;
}

static void cell_unit(struct dt_columns *c, const char *unit, int64_t value) {
    if (value == DT_NO_VALUE || value < 0 || !is_of_memory(unit))
        cell_number(c, value);
    else if (strcmp(unit, "words") == 0)
        cell_words(c, (uint64_t)value);
    else
        cell_bytes(c, (uint64_t)value);
}

/* Those that were always 0 say nothing. */
static bool was_zero(const struct dt_named *counter) {
    return counter->min == 0 && counter->max == 0;
}

static void counters(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_counters(r);
    guint n = 0;
    for (guint i = 0; i < rows->len; i++)
        if (!was_zero(g_ptr_array_index(rows, i)))
            g_ptr_array_index(rows, n++) = g_ptr_array_index(rows, i);
    if (!n)
        return;
    title(to,
          n < rows->len ? "Counters of the VM, without those that were always 0"
                        : "Counters of the VM",
          n, top);
    struct dt_columns *c = dt_columns_new(NAMES("node", "<counter", "min", "max", "last", "<unit"));
    for (guint i = 0; i < n && i < top; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        const char *unit = row->unit ? row->unit : "";
        cell_node(c, r, row->node);
        dt_columns_text(c, row->name);
        cell_unit(c, unit, row->min);
        cell_unit(c, unit, row->max);
        cell_unit(c, unit, row->last);
        dt_columns_text(c, is_of_memory(unit) || strcmp(unit, "number") == 0 ? "" : unit);
    }
    dt_columns_end(c, to);
}

void dt_report_text(const struct dt_report *r, unsigned top, GString *to) {
    findings(to, r);
    recording(to, r);
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++)
        processes(to, r, &orders[i], top);
    others(to, r);
    server_calls(to, r, top);
    calls(to, r, top);
    talks(to, r, top);
    dead(to, r, top);
    crashes(to, r, top);
    waits(to, r, top);
    collections(to, r, top);
    ports(to, r, top);
    spans(to, r, top);
    counters(to, r, top);
    log_lines(to, r, top);
}
