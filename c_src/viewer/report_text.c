#include <string.h>

#include "viewer/report_columns.h"
#include "viewer/report_parts.h"
#include "viewer/texts.h"

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

/* With its node, if that is not the one of the row. */
static void cell_other(struct dt_columns *c, const struct dt_who *who,
                       const struct dt_who *of_row) {
    if (!of_row || !who->node || who->node == of_row->node) {
        cell_who(c, who);
        return;
    }
    g_autofree char *shown = dt_show_who(who);
    g_autofree char *text = g_strdup_printf("node %u: %s", who->node->number, shown);
    dt_columns_text(c, text);
}

/* The row is of the sender's node. */
static void cells_pair(struct dt_columns *c, const struct dt_report *r,
                       const struct dt_pair *pair) {
    const struct dt_who *known = pair->from ? pair->from : pair->to;
    cell_node(c, r, known ? known->node : NULL);
    cell_who(c, pair->from);
    if (pair->to)
        cell_other(c, pair->to, known);
    else
        dt_columns_text(c, pair->text ? pair->text : "unknown");
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

/* -- Tables ----------------------------------------------------------------------------- */

struct table {
    const char *title;
    dt_rows *rows;
    const char *const *columns;
    void (*cells)(struct dt_columns *, const struct dt_report *, const void *row);
    bool (*is_dull)(const void *row); /* such rows are left out; NULL: all are shown */
    const char *without_dull;         /* ends the title where rows were left out */
};

#define COLUMNS(...)                                                                               \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* Returns whether there were some. */
static bool leave_out(GPtrArray *rows, bool (*is_dull)(const void *row)) {
    guint all = rows->len, n = 0;
    for (guint i = 0; i < all; i++)
        if (!is_dull(g_ptr_array_index(rows, i)))
            g_ptr_array_index(rows, n++) = g_ptr_array_index(rows, i);
    g_ptr_array_set_size(rows, (gint)n);
    return n < all;
}

/* The first `top` rows; without rows nothing. */
static void put_rows(GString *to, const struct dt_report *r, unsigned top,
                     const struct table *table, GPtrArray *rows) {
    bool has_dull = table->is_dull && leave_out(rows, table->is_dull);
    if (!rows->len)
        return;
    g_string_append_printf(to, "\n%s%s", table->title, has_dull ? table->without_dull : "");
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
    struct dt_columns *c = dt_columns_new(
        COLUMNS("", "<node", "<host", "os pid", "<OTP", "processes", "seconds", "<clock"));
    g_autoptr(GPtrArray) nodes = dt_report_nodes(r);
    for (guint i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);
        cell_node(c, r, node);
        dt_columns_text(c, node->name);
        dt_columns_text(c, node->hostname);
        cell_number(c, node->os_pid);
        dt_columns_text(c, node->otp);
        cell_count(c, node->processes);
        dt_columns_printf(c, "%.3f", (double)(node->last - node->first) / 1e9);
        g_autofree char *clock = dt_show_clock(node->clock);
        dt_columns_text(c, clock);
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
        g_string_append(to, "Findings: none\n\n");
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

static void cells_process(struct dt_columns *c, const struct dt_report *r,
                          const struct dt_who *who) {
    cell_node(c, r, who->node);
    cell_named(c, who);
    dt_columns_text(c, who->initial);
}

static void cell_runnable(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
}

static void cells_collecting(struct dt_columns *c, const struct dt_who *who) {
    cell_ns(c, collecting(who));
    cell_number(c, dt_who_number(who, DT_TOLD_COLLECTIONS, who->collections));
}

static void cells_messages(struct dt_columns *c, const struct dt_who *who) {
    cell_number(c, dt_who_number(who, DT_TOLD_SENDS, who->sent));
    cell_number(c, dt_who_number(who, DT_TOLD_DELIVERIES, who->received));
    cell_number(c, dt_who_mailbox_max(who));
}

static void that_runs(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_who *who = row;
    cells_process(c, r, who);
    cell_ns(c, run(who));
    cell_runnable(c, who);
    cell_ns(c, longest_wait(who));
    cells_collecting(c, who);
    cells_messages(c, who);
}

static void that_talks(struct dt_columns *c, const struct dt_report *r, const void *row) {
    cells_process(c, r, row);
    cells_messages(c, row);
}

static void that_collects(struct dt_columns *c, const struct dt_report *r, const void *row) {
    cells_process(c, r, row);
    cells_collecting(c, row);
    cell_ns(c, run(row));
}

static void that_waits(struct dt_columns *c, const struct dt_report *r, const void *row) {
    cells_process(c, r, row);
    cell_ns(c, longest_wait(row));
    cell_runnable(c, row);
    cell_ns(c, run(row));
}

#define PROCESS_COLUMNS(...) COLUMNS("node", "<process", "~initial call", __VA_ARGS__)

/* Processes by one of their numbers. */
static const struct {
    dt_criterion *by;
    struct table table;
} orders[] = {
    {run,
     {.title = "Processes by run time",
      .columns = PROCESS_COLUMNS("ran", "runnable", "longest", "collected", "GCs", "sent",
                                 "received", "mailbox"),
      .cells = that_runs}},
    {messages,
     {.title = "Processes by messages sent and received",
      .columns = PROCESS_COLUMNS("sent", "received", "mailbox"),
      .cells = that_talks}},
    {collecting,
     {.title = "Processes by time of garbage collection",
      .columns = PROCESS_COLUMNS("collected", "GCs", "ran"),
      .cells = that_collects}},
    {longest_wait,
     {.title = "Processes by their longest wait for a scheduler (inferred)",
      .columns = PROCESS_COLUMNS("longest", "runnable", "ran"),
      .cells = that_waits}},
};

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
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autoptr(GPtrArray) rows = sorted(&r->processes, orders[i].by);
        put_rows(to, r, top, &orders[i].table, rows);
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

static gint by_traffic(gconstpointer a, gconstpointer b) {
    const struct dt_who *x = *(struct dt_who *const *)a, *y = *(struct dt_who *const *)b;
    int by = dt_compare(messages(y), messages(x));
    return by ? by : dt_compare(y->run, x->run);
}

static GPtrArray *ports(const struct dt_report *r) {
    GPtrArray *ports = dt_report_ports(r);
    g_ptr_array_sort(ports, by_traffic);
    return ports;
}

static void port(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_who *port = row;
    cell_node(c, r, port->node);
    cell_who(c, port);
    cell_who(c, port->parent);
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
    cell_node(c, r, call->to ? call->to->node : NULL);
    const struct dt_who *caller = call->only ? call->only : call->from;
    if (call->to && caller && caller->node != call->to->node)
        cell_other(c, caller, call->to);
    else
        cell_short(c, caller);
    cell_short(c, call->to);
    dt_columns_text(c, call->text);
    cell_count(c, call->count);
    cell_quantiles(c, &call->took);
    cell_ns(c, dt_quantile(&call->queued, 0.99));
    cell_ns(c, dt_quantile(&call->worked, 0.99));
    cell_some(c, call->timeouts);
    cell_some(c, call->downs);
}

static void call(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *call = row;
    cell_node(c, r, call->node);
    dt_columns_text(c, call->name);
    cell_count(c, call->count);
    cell_ns(c, call->measured ? call->total : DT_NO_VALUE);
    cell_ns(c, call->measured ? call->own : DT_NO_VALUE);
    cell_quantiles(c, &call->took);
    cell_some(c, call->failed);
}

static void span(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *span = row;
    (void)r;
    dt_columns_text(c, span->name);
    cell_count(c, span->count);
    cell_quantiles(c, &span->took);
    cell_some(c, span->failed);
}

/* -- Messages --------------------------------------------------------------------------- */

static void talk(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_pair *talk = row;
    cells_pair(c, r, talk);
    cell_count(c, talk->count);
    cell_some(c, talk->inferred);
}

/* Nodes by their numbers, as in the table of nodes. */
static void request(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_request *request = row;
    g_autoptr(GString) nodes = g_string_new(NULL);
    for (guint i = 0; i < request->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(request->nodes, i);
        g_string_append_printf(nodes, "%s%u", i ? ", " : "", node->number);
    }
    cell_time(c, r, request->begin);
    dt_columns_text(c, request->label);
    cell_ns(c, request->end - request->begin);
    cell_count(c, request->messages);
    cell_count(c, request->between_nodes);
    cell_count(c, g_hash_table_size(request->processes));
    dt_columns_text(c, nodes->str);
}

static void dead(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_pair *dead = row;
    cells_pair(c, r, dead);
    cell_count(c, dead->count);
    dt_columns_text(c, dead->example);
}

/* -- Lists ------------------------------------------------------------------------------ */

static void cells_where(struct dt_columns *c, const struct dt_report *r,
                        const struct dt_listed *row) {
    cell_node(c, r, row->node);
    cell_who(c, row->who);
}

static void crash(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *crash = row;
    cell_time(c, r, crash->time);
    cells_where(c, r, crash);
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
    cells_where(c, r, wait);
    dt_columns_text(c, wait->text);
}

static void collection(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *collection = row;
    cell_time(c, r, collection->time);
    cell_ns(c, collection->ns);
    dt_columns_text(c, collection->is_major ? "major" : "minor");
    cell_words(c, collection->reclaimed);
    cell_words(c, collection->heap);
    cells_where(c, r, collection);
}

static void logged(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_listed *line = row;
    cell_time(c, r, line->time);
    dt_columns_text(c, line->word);
    cells_where(c, r, line);
    dt_columns_text(c, line->text);
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

static void counter(struct dt_columns *c, const struct dt_report *r, const void *row) {
    const struct dt_named *counter = row;
    const char *unit = counter->unit ? counter->unit : "";
    cell_node(c, r, counter->node);
    dt_columns_text(c, counter->name);
    cell_unit(c, unit, counter->min);
    cell_unit(c, unit, counter->max);
    cell_unit(c, unit, counter->last);
    dt_columns_text(c, is_of_memory(unit) || strcmp(unit, "number") == 0 ? "" : unit);
}

static bool was_zero(const void *row) {
    const struct dt_named *counter = row;
    return counter->min == 0 && counter->max == 0;
}

/* Where there is one node, messages and calls show them. */
static GPtrArray *of_several_nodes(const struct dt_report *r) {
    return dt_report_has_nodes(r) ? dt_report_requests(r) : g_ptr_array_new();
}

/* -- All of them ------------------------------------------------------------------------ */

static const struct table tables[] = {
    {"Calls of gen_servers, slowest first (in the mailbox and at work: p99, inferred)",
     dt_report_server_calls,
     COLUMNS("node", "<caller", "<server", "~request", "calls", "p50", "p99", "max", "mailbox",
             "work", "timeouts", "failed"),
     .cells = server_call},
    {"Functions by total time", dt_report_calls,
     COLUMNS("node", "<function", "calls", "total", "own", "p50", "p99", "max", "exceptions"),
     .cells = call},
    {"Messages by sender and receiver", dt_report_talks,
     COLUMNS("node", "<from", "<to", "messages", "inferred"), .cells = talk},
    {"Requests by their label of seq_trace", of_several_nodes,
     COLUMNS("at s", "<label", "took", "messages", "between nodes", "processes", "<nodes"),
     .cells = request},
    {"Messages to the dead: exited processes, names that nobody had", dt_report_dead,
     COLUMNS("node", "<from", "<to", "messages", "~example"), .cells = dead},
    {"Crashes", dt_report_crashes, COLUMNS("at s", "node", "<process", "~reason", "~linked"),
     .cells = crash},
    {"Longest waits for a scheduler (inferred)", dt_report_waits,
     COLUMNS("at s", "waited", "node", "<process", "~stopped in"), .cells = waited},
    {"Longest garbage collections", dt_report_collections,
     COLUMNS("at s", "took", "<kind", "reclaimed", "heap after", "node", "<process"),
     .cells = collection},
    {"Ports by traffic", ports,
     COLUMNS("node", "<port", "<owner", "messages to it", "from it", "written", "ran"),
     .cells = port},
    {"Spans by total time", dt_report_spans,
     COLUMNS("<span", "number", "p50", "p99", "max", "failed"), .cells = span},
    {"Counters of the VM", dt_report_counters,
     COLUMNS("node", "<counter", "min", "max", "last", "<unit"), .cells = counter,
     .is_dull = was_zero, .without_dull = ", without those that were always 0"},
    {"Log", dt_report_log, COLUMNS("at s", "<level", "node", "<process", "~text"), .cells = logged},
};

void dt_report_text(const struct dt_report *r, unsigned top, GString *to) {
    findings(to, r);
    recording(to, r);
    processes(to, r, top);
    others(to, r);
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++)
        put_table(to, r, top, &tables[i]);
}
