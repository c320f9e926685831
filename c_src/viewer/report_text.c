#include <string.h>

#include "viewer/report_columns.h"
#include "viewer/report_parts.h"

enum { BYTES_PER_WORD = 8 };

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

/* A time as seconds since the recording's begin. */
static void cell_time(struct dt_columns *c, const struct dt_report *r, int64_t time) {
    dt_columns_printf(c, "%.6f", (double)(time - r->begin) / 1e9);
}

static bool has_many_nodes(const struct dt_report *r) {
    g_autoptr(GPtrArray) nodes = dt_report_nodes(r);
    return nodes->len > 1;
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

/* -- Tables ----------------------------------------------------------------------------- */

struct table {
    const char *title;
    dt_rows *rows;
    const char *const *columns;
    void (*cells)(struct dt_columns *, const struct dt_report *, const void *row);
};

#define COLUMNS(...)                                                                               \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* The first `top` rows; without rows nothing. */
static void put_rows(GString *to, const struct dt_report *r, unsigned top,
                     const struct table *table, const GPtrArray *rows) {
    if (!rows->len)
        return;
    g_string_append_printf(to, "\n%s", table->title);
    if (rows->len > top)
        g_string_append_printf(to, " (%u of %u)", top, rows->len);
    g_string_append_c(to, '\n');
    struct dt_columns *c = dt_columns_new(table->columns);
    for (guint i = 0; i < rows->len && i < top; i++)
        table->cells(c, r, g_ptr_array_index(rows, i));
    dt_columns_end(c, to);
}

static void put_table(GString *to, const struct dt_report *r, unsigned top,
                      const struct table *table) {
    g_autoptr(GPtrArray) rows = table->rows(r);
    put_rows(to, r, top, table, rows);
}

/* -- The recording ---------------------------------------------------------------------- */

static void nodes(GString *to, const struct dt_report *r) {
    struct dt_columns *c =
        dt_columns_new(COLUMNS("<node", "<host", "os pid", "<OTP", "processes", "seconds"));
    g_autoptr(GPtrArray) nodes = dt_report_nodes(r);
    for (guint i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);
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
        if (dt_is_told(r->told, i))
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

/* -- Processes and ports ---------------------------------------------------------------- */

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

static const struct {
    const char *title;
    dt_criterion *by;
} orders[] = {
    {"Processes by run time", run},
    {"Processes by messages sent and received", messages},
    {"Processes by time of garbage collection", collecting},
    {"Processes by their longest wait for a scheduler (inferred)", longest_wait},
};

static void process(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_who *who = row;
    cell_named(c, r, who);
    dt_columns_text(c, who->initial);
    cell_ns(c, run(who));
    cell_ns(c, dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
    cell_ns(c, longest_wait(who));
    cell_ns(c, collecting(who));
    cell_number(c, dt_who_number(who, DT_TOLD_COLLECTIONS, who->collections));
    cell_number(c, dt_who_number(who, DT_TOLD_SENDS, who->sent));
    cell_number(c, dt_who_number(who, DT_TOLD_DELIVERIES, who->received));
    cell_number(c, dt_who_mailbox_max(who));
}

/* Those that have some of it. */
static GPtrArray *sorted(const struct dt_kept *kept, dt_criterion *by) {
    GPtrArray *whos = dt_kept_copy(kept);
    guint n = 0;
    dt_whos_sort(whos, by);
    while (n < whos->len && by(g_ptr_array_index(whos, n)) > 0)
        n++;
    g_ptr_array_set_size(whos, (gint)n);
    return whos;
}

static void processes(GString *to, const struct dt_report *r, unsigned top) {
    struct table table = {.columns =
                              COLUMNS("<process", "<initial call", "ran", "runnable", "longest",
                                      "collected", "GCs", "sent", "received", "mailbox"),
                          .cells = process};
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GPtrArray) rows = sorted(&r->processes, orders[i].by);
        table.title = orders[i].title;
        put_rows(to, r, top, &table, rows);
    }
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

static void port(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_who *port = row;
    cell_who(c, r, port);
    cell_who(c, r, port->parent);
    cell_number(c, dt_who_number(port, DT_TOLD_DELIVERIES, port->received));
    cell_number(c, dt_who_number(port, DT_TOLD_SENDS, port->sent));
    if (dt_who_number(port, DT_TOLD_OUTPUT, 0) == DT_NO_VALUE)
        dt_columns_text(c, "");
    else
        cell_bytes(c, port->bytes_out);
    cell_ns(c, dt_who_ns(port, DT_TOLD_SCHEDULING, port->run));
}

/* -- Calls ------------------------------------------------------------------------------ */

static void cell_quantiles(struct dt_columns *c, const struct dt_quantiles *q) {
    cell_ns(c, dt_quantile(q, 0.5));
    cell_ns(c, dt_quantile(q, 0.99));
    cell_ns(c, dt_quantiles_max(q));
}

static void server_call(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_pair *call = row;
    (void)r;
    cell_short(c, call->only ? call->only : call->from);
    cell_short(c, call->to);
    dt_columns_text(c, call->text);
    cell_count(c, call->count);
    cell_quantiles(c, &call->took);
    cell_ns(c, dt_quantile(&call->queued, 0.99));
    cell_ns(c, dt_quantile(&call->worked, 0.99));
    cell_count(c, call->timeouts);
    cell_count(c, call->downs);
}

static void call(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *call = row;
    (void)r;
    dt_columns_text(c, call->name);
    cell_count(c, call->count);
    cell_ns(c, call->measured ? call->total : DT_NO_VALUE);
    cell_ns(c, call->measured ? call->own : DT_NO_VALUE);
    cell_quantiles(c, &call->took);
    cell_count(c, call->failed);
}

static void span(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *span = row;
    (void)r;
    dt_columns_text(c, span->name);
    cell_count(c, span->count);
    cell_quantiles(c, &span->took);
    cell_count(c, span->failed);
}

/* -- Messages --------------------------------------------------------------------------- */

static void talk(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_pair *talk = row;
    cell_who(c, r, talk->from);
    cell_who(c, r, talk->to);
    cell_count(c, talk->count);
    cell_count(c, talk->inferred);
}

static void dead(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_pair *dead = row;
    cell_who(c, r, dead->from);
    if (dead->to)
        cell_who(c, r, dead->to);
    else
        dt_columns_text(c, dead->text);
    cell_count(c, dead->count);
    dt_columns_text(c, dead->example);
}

/* -- Lists ------------------------------------------------------------------------------ */

static void crash(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *crash = row;
    cell_time(c, r, crash->time);
    cell_who(c, r, crash->who);
    dt_columns_text(c, crash->text);
    g_autoptr(GString) linked = g_string_new(NULL);
    for (guint n = 0; n < crash->linked->len; n++) {
        g_autofree char *shown = dt_show_who(g_ptr_array_index(crash->linked, n));
        g_string_append_printf(linked, "%s%s", n ? ", " : "", shown);
    }
    dt_columns_text(c, linked->str);
}

static void waited(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *wait = row;
    cell_time(c, r, wait->time);
    cell_ns(c, wait->ns);
    cell_who(c, r, wait->who);
    dt_columns_text(c, wait->text);
}

static void collection(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *collection = row;
    cell_time(c, r, collection->time);
    cell_ns(c, collection->ns);
    dt_columns_text(c, collection->is_major ? "major" : "minor");
    cell_words(c, collection->reclaimed);
    cell_words(c, collection->heap);
    cell_who(c, r, collection->who);
}

static void logged(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *line = row;
    cell_time(c, r, line->time);
    dt_columns_text(c, line->word);
    cell_who(c, r, line->who);
    dt_columns_text(c, line->text);
}

static void cell_unit(struct dt_columns *c, const char *unit, int64_t value) {
    if (value >= 0 && strcmp(unit, "words") == 0)
        cell_words(c, (uint64_t)value);
    else if (value >= 0 && strcmp(unit, "bytes") == 0)
        cell_bytes(c, (uint64_t)value);
    else
        cell_number(c, value);
}

static void counter(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *counter = row;
    const char *unit = counter->unit ? counter->unit : "";
    (void)r;
    dt_columns_text(c, dt_seen_name(counter->node));
    dt_columns_text(c, counter->name);
    dt_columns_text(c, unit);
    cell_unit(c, unit, counter->min);
    cell_unit(c, unit, counter->max);
    cell_unit(c, unit, counter->last);
}

/* -- All of them ------------------------------------------------------------------------ */

static const struct table tables[] = {
    {"Calls of gen_servers, slowest first; p99 of time in the mailbox and of work, inferred",
     dt_report_server_calls,
     COLUMNS("<caller", "<server", "<request", "calls", "p50", "p99", "max", "mailbox", "work",
             "timeouts", "failed"),
     server_call},
    {"Functions by total time", dt_report_calls,
     COLUMNS("<function", "calls", "total", "own", "p50", "p99", "max", "exceptions"), call},
    {"Messages by sender and receiver", dt_report_talks,
     COLUMNS("<from", "<to", "messages", "inferred"), talk},
    {"Messages to the dead: exited processes, names that nobody had", dt_report_dead,
     COLUMNS("<from", "<to", "messages", "<example"), dead},
    {"Crashes", dt_report_crashes, COLUMNS("at s", "<process", "<reason", "<linked"), crash},
    {"Longest waits for a scheduler (inferred)", dt_report_waits,
     COLUMNS("at s", "waited", "<process", "<stopped in"), waited},
    {"Longest garbage collections", dt_report_collections,
     COLUMNS("at s", "took", "<kind", "reclaimed", "heap after", "<process"), collection},
    {"Ports by traffic", dt_report_ports,
     COLUMNS("<port", "<owner", "messages to it", "from it", "written", "ran"), port},
    {"Spans by total time", dt_report_spans,
     COLUMNS("<span", "number", "p50", "p99", "max", "failed"), span},
    {"Counters of the VM", dt_report_counters,
     COLUMNS("<node", "<counter", "<unit", "min", "max", "last"), counter},
    {"Log", dt_report_log, COLUMNS("at s", "<level", "<process", "<text"), logged},
};

void dt_report_text(const struct dt_report *r, unsigned top, GString *to) {
    findings(to, r);
    recording(to, r);
    processes(to, r, top);
    others(to, r);
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++)
        put_table(to, r, top, &tables[i]);
}
