#include "report/report_text.h"

#include <string.h>

#include "report/cells.h"
#include "report/report_table.h"
#include "shared/amounts.h"
#include "shared/texts.h"
#include "summary/findings.h"

/* Lines of text are at most this wide, also without a terminal. */
enum { FOLDED = 120 };

/* A line of text, indented and folded. */
static void line(GString *to, struct dt_text_size size, const char *prefix, const char *text) {
    long width = size.width ? MIN(size.width, FOLDED) : FOLDED;
    g_autoptr(GString) escaped = g_string_new(prefix);

    dt_columns_escape(escaped, text);
    const char *rest = escaped->str;
    long room = width;
    while (g_utf8_strlen(rest, -1) > room) {
        const char *end = g_utf8_offset_to_pointer(rest, room);
        const char *gap = end; /* between words, or between the elements of a term */

        while (gap > rest && *gap != ' ' && gap[-1] != ',')
            gap--;
        if (gap - rest > room / 2)
            end = gap;
        g_string_append_len(to, rest, end - rest);
        g_string_append_printf(to, "\n%*s", (int)strlen(prefix), "");
        rest = *end == ' ' ? end + 1 : end;
        room = MAX(width - (long)strlen(prefix), 1);
    }
    g_string_append_printf(to, "%s\n", rest);
}

/* -- The recording ---------------------------------------------------------------------- */

static void nodes(GString *to, const struct dt_summary *summary, struct dt_text_size size) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    if (!nodes->len)
        return;
    struct dt_columns *c = dt_columns_new(
        DT_COLUMNS_OF("", "<node", "<host", "os pid", "<OTP", "processes", "seconds", "<clock"));
    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);

        dt_cell_node(c, summary, node);
        dt_columns_text(c, node->name);
        dt_columns_text(c, node->hostname);
        dt_cell_number(c, node->os_pid);
        dt_columns_text(c, node->otp);
        dt_cell_count(c, node->processes);
        dt_columns_printf(c, "%.3f", (double)(node->last - node->first) / 1e9);
        g_autofree char *clock = dt_show_clock(node->clock);
        dt_columns_text(c, clock);
    }
    dt_columns_end(c, size.width, to);
}

static void recording(GString *to, const struct dt_summary *summary, struct dt_text_size size) {
    double seconds = (double)dt_summary_ns(summary) / 1e9;

    g_string_append_printf(to, "Recording: %" PRIu64 " events in %.3f s", summary->events, seconds);
    if (summary->skipped)
        g_string_append_printf(to, ", %" PRIu64 " others skipped", summary->skipped);
    g_string_append(to, summary->lost_rows ? "; events were lost\n" : ", none lost\n");
    if (dt_summary_is_partly_traced(summary))
        g_string_append_printf(
            to,
            "Processes were traced for %s of it; the rest has samples, counters, logs, marks "
            "and spans\n",
            dt_show_ns(dt_summary_ns(summary) - dt_summary_untraced(summary)).text);
    g_autoptr(GString) kinds = g_string_new(NULL);
    for (unsigned i = 0; i < DT_RECORDED_KINDS; i++)
        if (dt_is_recorded(summary->recorded, i))
            g_string_append_printf(kinds, "%s%s", kinds->len ? ", " : "",
                                   dt_recorded_kind_words[i]);
    line(to, size, "Recorded: ", kinds->len ? kinds->str : "nothing that this report shows");
    g_string_append_c(to, '\n');
    nodes(to, summary, size);
}

/* Only the first finding of a rule has the hint what to do next. */
static bool is_next_printed(const struct dt_summary *summary, unsigned number) {
    const struct dt_finding *all = (const struct dt_finding *)(void *)summary->findings->data;

    for (unsigned i = 0; i < number; i++)
        if (all[i].rule == all[number].rule)
            return true;
    return false;
}

static void findings(GString *to, const struct dt_summary *summary, struct dt_text_size size) {
    if (!summary->findings->len) {
        g_string_append(to, "Findings: none\n\n");
        return;
    }
    g_string_append(to, "Findings\n");
    for (unsigned i = 0; i < summary->findings->len; i++) {
        const struct dt_finding *finding = &g_array_index(summary->findings, struct dt_finding, i);
        char prefix[16];

        g_snprintf(prefix, sizeof prefix, "  %-8s", dt_severity_names[finding->severity]);
        line(to, size, prefix, finding->text);
        if (!is_next_printed(summary, i))
            line(to, size, "          next: ", finding->rule->next);
    }
    g_string_append_c(to, '\n');
}

/* -- Ports ------------------------------------------------------------------------------ */

static int by_traffic(const void *a, const void *b) {
    const struct dt_actor *x = *(struct dt_actor *const *)a, *y = *(struct dt_actor *const *)b;
    int by = dt_compare(dt_top_by_messages(y), dt_top_by_messages(x));

    return by ? by : dt_compare(y->activity->run, x->activity->run);
}

static GPtrArray *ports(const struct dt_summary *summary) {
    GPtrArray *ports = dt_rows_ports(summary);

    g_ptr_array_sort(ports, by_traffic);
    return ports;
}

static void port(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_actor *port = row;

    dt_cell_node(c, summary, port->node);
    dt_cell_actor(c, port);
    dt_cell_actor(c, dt_actor_owner(port));
    dt_cell_number(c, dt_activity_number(port, DT_RECORDED_DELIVERIES, port->activity->received));
    dt_cell_number(c, dt_activity_number(port, DT_RECORDED_SENDS, port->activity->sent));
    if (dt_activity_number(port, DT_RECORDED_OUTPUT, 0) == DT_NO_VALUE)
        dt_columns_text(c, "");
    else
        dt_cell_bytes(c, port->activity->bytes_out);
    dt_cell_ns(c, dt_activity_ns(port, port->activity->run));
}

/* -- Calls ------------------------------------------------------------------------------ */

static void cell_quantiles(struct dt_columns *c, const struct dt_quantiles *q) {
    dt_cell_ns(c, dt_quantile(q, 0.5));
    dt_cell_ns(c, dt_quantile_p99(q));
    dt_cell_ns(c, dt_quantiles_max(q));
}

static void server_call(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_pair *call = row;

    dt_cell_node(c, summary, call->to ? call->to->node : NULL);
    const struct dt_actor *caller = call->only ? call->only : call->from;
    if (call->to && caller && caller->node != call->to->node)
        dt_cell_other(c, caller, call->to);
    else
        dt_cell_short(c, caller);
    dt_cell_short(c, call->to);
    dt_cell_term(c, call, call->text);
    dt_cell_count(c, call->count);
    cell_quantiles(c, &call->took);
    dt_cell_ns(c, dt_quantile_high(&call->queued));
    dt_cell_some_ns(c, dt_quantile_high(&call->runnable));
    dt_cell_ns(c, dt_quantile_high(&call->worked));
    dt_cell_some_ns(c, dt_quantile_high(&call->deferred));
    dt_cell_some(c, call->timeouts);
    dt_cell_some(c, call->downs);
}

static void call(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_named *call = row;

    dt_cell_node(c, summary, call->node);
    dt_columns_text(c, call->name);
    dt_cell_count(c, call->count);
    dt_cell_ns(c, call->measured ? call->total : DT_NO_VALUE);
    dt_cell_ns(c, call->measured ? call->own : DT_NO_VALUE);
    cell_quantiles(c, &call->took);
    dt_cell_some(c, call->failed);
}

static void span(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_named *span = row;

    (void)summary;
    dt_columns_text(c, span->name);
    dt_cell_count(c, span->count);
    cell_quantiles(c, &span->took);
    dt_cell_some(c, span->failed);
}

/* Percent of a kind's time. */
enum { SHOWN_PART = 5 };

/* Without a duration, the event has no times. */
static void telemetry(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_named *kind = row;
    bool has_failed = kind->failed > 0;

    (void)summary;
    dt_columns_text(c, kind->name);
    dt_cell_count(c, kind->count);
    dt_cell_ns(c, kind->took.count ? kind->total : DT_NO_VALUE);
    cell_quantiles(c, &kind->took);
    dt_cell_some(c, kind->failed);
    dt_columns_text(c, has_failed ? dt_show_share((double)kind->failed / (double)kind->count).text
                                  : "");
    const struct dt_part *part = dt_named_largest_part(kind);
    bool is_shown = part && part->ns * 100 >= kind->total * SHOWN_PART;
    dt_columns_text(c, is_shown ? dt_show_share((double)part->ns / (double)kind->total).text : "");
    dt_columns_text(c, is_shown ? part->of->name : "");
}

/* -- Messages --------------------------------------------------------------------------- */

static void talk(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_pair *talk = row;

    dt_cells_pair(c, summary, talk);
    dt_cell_count(c, talk->count);
    dt_cell_some(c, talk->inferred);
}

/* Nodes are shown by their numbers in the table of nodes. */
static void request(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_request *request = row;
    g_autoptr(GString) nodes = g_string_new(NULL);

    for (unsigned i = 0; i < request->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(request->nodes, i);

        g_string_append_printf(nodes, "%s%u", i ? ", " : "", node->number);
    }
    dt_cell_time(c, summary, request->begin);
    dt_columns_text(c, request->label);
    dt_cell_ns(c, request->end - request->begin);
    dt_cell_count(c, request->messages);
    dt_cell_count(c, request->between_nodes);
    dt_cell_count(c, g_hash_table_size(request->processes));
    dt_columns_text(c, nodes->str);
}

static void dead(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_pair *dead = row;

    dt_cells_pair(c, summary, dead);
    dt_cell_count(c, dead->count);
    dt_cell_term(c, dead, dead->example);
}

/* -- Lists ------------------------------------------------------------------------------ */

static void cells_where(struct dt_columns *c, const struct dt_summary *summary,
                        const struct dt_listed *row) {
    dt_cell_node(c, summary, row->node);
    dt_cell_actor(c, row->actor);
}

static void crash(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_listed *crash = row;

    dt_cell_time(c, summary, crash->time);
    cells_where(c, summary, crash);
    dt_columns_text(c, crash->text);
    g_autoptr(GString) linked = g_string_new(NULL);
    for (unsigned n = 0; n < crash->linked->len; n++) {
        g_autofree char *shown = dt_actor_show_pid(g_ptr_array_index(crash->linked, n));

        g_string_append_printf(linked, "%s%s", n ? ", " : "", shown);
    }
    dt_columns_text(c, linked->str);
}

static void waited(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_listed *wait = row;

    dt_cell_time(c, summary, wait->time);
    dt_cell_ns(c, wait->ns);
    cells_where(c, summary, wait);
    dt_columns_text(c, wait->text);
}

static void collection(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_listed *collection = row;

    dt_cell_time(c, summary, collection->time);
    dt_cell_ns(c, collection->ns);
    dt_columns_printf(c, "%s%s", collection->is_major ? "major" : "minor",
                      collection->is_stretched ? ", stretched" : "");
    dt_cell_words(c, collection->reclaimed);
    dt_cell_words(c, collection->heap);
    cells_where(c, summary, collection);
}

/* A log line or another event. */
static void logged(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_listed *line = row;

    dt_cell_time(c, summary, line->time);
    dt_columns_text(c, line->word);
    cells_where(c, summary, line);
    dt_columns_text(c, line->text);
}

static bool is_of_memory(const char *unit) {
    return strcmp(unit, "words") == 0 || strcmp(unit, "bytes") == 0;
}

static void cell_unit(struct dt_columns *c, const char *unit, int64_t value) {
    if (value < 0 || !is_of_memory(unit))
        dt_cell_number(c, value);
    else if (strcmp(unit, "words") == 0)
        dt_cell_words(c, (uint64_t)value);
    else
        dt_cell_bytes(c, (uint64_t)value);
}

static void counter(struct dt_columns *c, const struct dt_summary *summary, const void *row) {
    const struct dt_named *counter = row;
    const char *unit = counter->unit ? counter->unit : "";

    dt_cell_node(c, summary, counter->node);
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

static bool is_of_node(const void *row) {
    return !dt_is_of_scheduler(((const struct dt_named *)row)->name);
}

/* With a single node, the tables of messages and calls show the requests. */
static GPtrArray *of_several_nodes(const struct dt_summary *summary) {
    return dt_seen_nodes_are_several(&summary->actors.nodes) ? dt_rows_requests(summary)
                                                             : g_ptr_array_new();
}

/* -- All of them ------------------------------------------------------------------------ */

static const struct dt_table tables[] = {
    {"Calls of gen_servers and of OTP's own servers, slowest first (the parts: p99, or the longest "
     "of fewer than 100 calls; inferred)",
     dt_rows_server_calls,
     DT_COLUMNS_OF("node", "<caller", "<server", "~request", "calls", "p50", "p99", "max",
                   "mailbox", "runnable", "work", "deferred", "timeouts", "failed"),
     .cells = server_call},
    {"Functions by total time", dt_rows_calls,
     DT_COLUMNS_OF("node", "<function", "calls", "total", "own", "p50", "p99", "max", "exceptions"),
     .cells = call},
    {"Messages by sender and receiver", dt_rows_talks,
     DT_COLUMNS_OF("node", "<from", "<to", "messages", "inferred"), .cells = talk},
    {"Requests by seq_trace label", of_several_nodes,
     DT_COLUMNS_OF("at s", "<label", "took", "messages", "between nodes", "processes", "<nodes"),
     .cells = request},
    {"Messages to the dead: exited processes, unregistered names", dt_rows_dead,
     DT_COLUMNS_OF("node", "<from", "<to", "messages", "~example"), .cells = dead},
    {"Crashes", dt_rows_crashes, DT_COLUMNS_OF("at s", "node", "<process", "~reason", "~linked"),
     .cells = crash},
    {"Longest waits for a scheduler (inferred)", dt_rows_waits,
     DT_COLUMNS_OF("at s", "waited", "node", "<process", "~stopped in"), .cells = waited},
    {"Longest garbage collections", dt_rows_collections,
     DT_COLUMNS_OF("at s", "took", "<kind", "reclaimed", "heap after", "node", "<process"),
     .cells = collection},
    {"Ports by traffic", ports,
     DT_COLUMNS_OF("node", "<port", "<owner", "messages to it", "from it", "written", "ran"),
     .cells = port},
    {"Spans by total time", dt_rows_spans,
     DT_COLUMNS_OF("<span", "number", "p50", "p99", "max", "failed"), .cells = span},
    {"Telemetry by total time", dt_rows_telemetry,
     DT_COLUMNS_OF("<event", "number", "total", "p50", "p99", "max", "exceptions", "of all",
                   "inside", "~of"),
     .cells = telemetry},
    {"Counters of the VM", dt_rows_counters,
     DT_COLUMNS_OF("node", "<counter", "min", "max", "last", "<unit"), .cells = counter,
     .is_dull = was_zero, .without_dull = ", without those that were always 0",
     .is_first = is_of_node},
    {"Log", dt_rows_log, DT_COLUMNS_OF("at s", "<level", "node", "<process", "~text"),
     .cells = logged},
    {"Other events", dt_rows_others, DT_COLUMNS_OF("at s", "<event", "node", "<process", "~fields"),
     .cells = logged},
};

void dt_report_text(const struct dt_summary *summary, struct dt_text_size size, GString *to) {
    findings(to, summary, size);
    recording(to, summary, size);
    dt_report_processes(to, summary, size);
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++)
        dt_table_put(to, summary, size, &tables[i]);
}
