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

static void cell_words(struct dt_columns *c, uint64_t words) {
    char text[32];
    dt_show_bytes(text, sizeof text, words * BYTES_PER_WORD);
    dt_columns_text(c, text);
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

/* A time as seconds since the recording's begin. */
static void cell_time(struct dt_columns *c, const struct dt_report *r, int64_t time) {
    dt_columns_printf(c, "%.6f", (double)(time - r->begin) / 1e9);
}

static bool has_many_nodes(const struct dt_report *r) {
    guint n = 0;
    for (guint i = 0; i < r->nodes->len; i++)
        n += g_ptr_array_index(r->nodes, i) != NULL;
    return n > 1;
}

static void cell_who(struct dt_columns *c, const struct dt_report *r, const struct dt_who *who) {
    g_autofree char *shown = dt_show_who(who);
    if (!who || !who->node || !has_many_nodes(r)) {
        dt_columns_text(c, shown);
        return;
    }
    g_autofree char *with_node = g_strdup_printf("%s %s", shown, who->node->name);
    dt_columns_text(c, with_node);
}

/* Where many columns leave little room: the name alone, if it has one. */
static void cell_short(struct dt_columns *c, const struct dt_who *who) {
    g_autofree char *shown = dt_show_who(who);
    dt_columns_text(c, who && who->name && *who->name ? who->name : shown);
}

/* Beside a column with the initial call. */
static void cell_named(struct dt_columns *c, const struct dt_report *r, const struct dt_who *who) {
    g_autoptr(GString) text = g_string_new(who->pid);
    const char *other = *who->name ? who->name : who->label;
    if (*other)
        g_string_append_printf(text, " %s", other);
    if (who->node && has_many_nodes(r))
        g_string_append_printf(text, " %s", who->node->name);
    dt_columns_text(c, text->str);
}

/* -- The recording ---------------------------------------------------------------------- */

static void nodes(GString *to, const struct dt_report *r) {
    struct dt_columns *c =
        dt_columns_new(NAMES("<node", "<host", "os pid", "<OTP", "processes", "seconds"));
    for (guint i = 0; i < r->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(r->nodes, i);
        if (!node)
            continue;
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

/* A table of processes, ordered by one of their numbers. */
struct order {
    const char *title;
    int64_t (*value)(const struct dt_who *who);
};

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

static const struct order orders[] = {
    {"Processes by run time", run},
    {"Processes by messages sent and received", messages},
    {"Processes by time of garbage collection", collecting},
    {"Processes by their longest wait for a scheduler (inferred)", longest_wait},
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
    struct dt_columns *c =
        dt_columns_new(NAMES("<process", "<initial call", "ran", "runnable", "longest", "collected",
                             "GCs", "sent", "received", "mailbox"));
    for (guint i = 0; i < n && i < top; i++) {
        const struct dt_who *who = g_ptr_array_index(whos, i);
        cell_named(c, r, who);
        dt_columns_text(c, who->initial);
        cell_ns(c, run(who));
        cell_ns(c, dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
        cell_ns(c, longest_wait(who));
        cell_ns(c, collecting(who));
        cell_number(c, dt_who_number(who, DT_TOLD_COLLECTIONS, who->collections));
        cell_number(c, dt_who_number(who, DT_TOLD_SENDS, who->sent));
        cell_number(c, dt_who_number(who, DT_TOLD_DELIVERIES, who->received));
        bool has_both = who->node && who->node->told & 1U << DT_TOLD_SENDS;
        cell_number(c, has_both ? dt_who_number(who, DT_TOLD_DELIVERIES, who->mailbox_max)
                                : DT_NO_VALUE);
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

static void ports(GString *to, const struct dt_report *r, unsigned top) {
    guint n = r->ports.whos->len;
    if (!n)
        return;
    title(to, "Ports by traffic", n, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("<port", "<owner", "messages to it", "from it", "written", "ran"));
    for (guint i = 0; i < n && i < top; i++) {
        const struct dt_who *port = g_ptr_array_index(r->ports.whos, i);
        cell_who(c, r, port);
        cell_who(c, r, port->parent);
        cell_number(c, dt_who_number(port, DT_TOLD_DELIVERIES, port->received));
        cell_number(c, dt_who_number(port, DT_TOLD_SENDS, port->sent));
        char written[32] = "";
        if (dt_who_number(port, DT_TOLD_OUTPUT, port->bytes_out) != DT_NO_VALUE)
            dt_show_bytes(written, sizeof written, port->bytes_out);
        dt_columns_text(c, written);
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
    title(to,
          "Calls of gen_servers, slowest first; p99 of time in the mailbox and of work, inferred",
          rows->len, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("<caller", "<server", "<request", "calls", "p50", "p99", "max",
                             "mailbox", "work", "timeouts", "failed"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cell_short(c, row->only ? row->only : row->from);
        cell_short(c, row->to);
        dt_columns_text(c, row->text);
        cell_count(c, row->count);
        cell_quantiles(c, &row->took);
        cell_ns(c, dt_quantile(&row->queued, 0.99));
        cell_ns(c, dt_quantile(&row->worked, 0.99));
        cell_count(c, row->timeouts);
        cell_count(c, row->downs);
    }
    dt_columns_end(c, to);
}

static void calls(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_calls(r);
    if (!rows->len)
        return;
    title(to, "Functions by total time", rows->len, top);
    struct dt_columns *c = dt_columns_new(
        NAMES("<function", "calls", "total", "own", "p50", "p99", "max", "exceptions"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        dt_columns_text(c, row->name);
        cell_count(c, row->count);
        cell_ns(c, row->measured ? row->total : DT_NO_VALUE);
        cell_ns(c, row->measured ? row->own : DT_NO_VALUE);
        cell_quantiles(c, &row->took);
        cell_count(c, row->failed);
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
        cell_count(c, row->failed);
    }
    dt_columns_end(c, to);
}

/* -- Messages --------------------------------------------------------------------------- */

static void talks(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->talks);
    if (!rows->len)
        return;
    title(to, "Messages by sender and receiver", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("<from", "<to", "messages", "inferred"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cell_who(c, r, row->from);
        cell_who(c, r, row->to);
        cell_count(c, row->count);
        cell_count(c, row->inferred);
    }
    dt_columns_end(c, to);
}

static void dead(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->dead);
    if (!rows->len)
        return;
    title(to, "Messages to the dead: exited processes, names that nobody had", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("<from", "<to", "messages", "<example"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        cell_who(c, r, row->from);
        if (row->to)
            cell_who(c, r, row->to);
        else
            dt_columns_text(c, row->text);
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
    struct dt_columns *c = dt_columns_new(NAMES("at s", "<process", "<reason", "<linked"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_who(c, r, row->who);
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
    struct dt_columns *c = dt_columns_new(NAMES("at s", "waited", "<process", "<stopped in"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_ns(c, row->ns);
        cell_who(c, r, row->who);
        dt_columns_text(c, row->text);
    }
    dt_columns_end(c, to);
}

static void collections(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->collections.rows;
    if (!rows->len)
        return;
    title(to, "Longest garbage collections", rows->len, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("at s", "took", "<kind", "reclaimed", "heap after", "<process"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        cell_ns(c, row->ns);
        dt_columns_text(c, row->is_major ? "major" : "minor");
        cell_words(c, row->reclaimed);
        cell_words(c, row->heap);
        cell_who(c, r, row->who);
    }
    dt_columns_end(c, to);
}

static void log_lines(GString *to, const struct dt_report *r, unsigned top) {
    const GArray *rows = r->log.rows;
    if (!rows->len)
        return;
    title(to, "Log", rows->len, top);
    struct dt_columns *c = dt_columns_new(NAMES("at s", "<level", "<process", "<text"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_listed *row = &g_array_index(rows, struct dt_listed, i);
        cell_time(c, r, row->time);
        dt_columns_text(c, row->word);
        cell_who(c, r, row->who);
        dt_columns_text(c, row->text);
    }
    dt_columns_end(c, to);
}

static void cell_unit(struct dt_columns *c, const char *unit, int64_t value) {
    char text[32];
    bool is_words = strcmp(unit, "words") == 0;
    if (value == DT_NO_VALUE || value < 0 || (!is_words && strcmp(unit, "bytes") != 0)) {
        cell_number(c, value);
        return;
    }
    dt_show_bytes(text, sizeof text, (uint64_t)value * (is_words ? BYTES_PER_WORD : 1));
    dt_columns_text(c, text);
}

static void counters(GString *to, const struct dt_report *r, unsigned top) {
    g_autoptr(GPtrArray) rows = dt_report_counters(r);
    if (!rows->len)
        return;
    title(to, "Counters of the VM", rows->len, top);
    struct dt_columns *c =
        dt_columns_new(NAMES("<node", "<counter", "<unit", "min", "max", "last"));
    for (guint i = 0; i < rows->len && i < top; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        const char *unit = row->unit ? row->unit : "";
        dt_columns_text(c, row->node ? row->node->name : "");
        dt_columns_text(c, row->name);
        dt_columns_text(c, unit);
        cell_unit(c, unit, row->min);
        cell_unit(c, unit, row->max);
        cell_unit(c, unit, row->last);
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
