#include <string.h>

#include "viewer/report_parts.h"

enum { VERSION = 1 };

/* After a bracket nothing separates; else a comma does. */
static void separate(GString *to) {
    int last = to->len ? to->str[to->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':')
        g_string_append_c(to, ',');
}

static void key(GString *to, const char *name) {
    separate(to);
    g_string_append_printf(to, "\"%s\":", name);
}

static void open(GString *to, const char *name, char bracket) {
    if (name)
        key(to, name);
    else
        separate(to);
    g_string_append_c(to, bracket);
}

static void close(GString *to, char bracket) {
    g_string_append_c(to, bracket);
}

static void text(GString *to, const char *name, const char *value) {
    key(to, name);
    dt_json_string(to, value ? value : "");
}

static void number(GString *to, const char *name, int64_t value) {
    key(to, name);
    if (value == DT_NO_VALUE)
        g_string_append(to, "null");
    else
        g_string_append_printf(to, "%" G_GINT64_FORMAT, value);
}

static void count(GString *to, const char *name, uint64_t value) {
    number(to, name, (int64_t)value);
}

static void boolean(GString *to, const char *name, bool value) {
    key(to, name);
    g_string_append(to, value ? "true" : "false");
}

static void quantiles(GString *to, const char *prefix, const struct dt_quantiles *q, bool max) {
    static const struct {
        const char *name;
        double share;
    } shown[] = {{"p50", 0.5}, {"p99", 0.99}};
    char name[32];
    for (size_t i = 0; i < G_N_ELEMENTS(shown); i++) {
        g_snprintf(name, sizeof name, "%s%s_ns", prefix, shown[i].name);
        number(to, name, dt_quantile(q, shown[i].share));
    }
    if (max)
        number(to, "max_ns", dt_quantiles_max(q));
}

static const char *name_of(const struct dt_seen_node *node) {
    return node && node->name ? node->name : "";
}

static void ref(GString *to, const char *name, const struct dt_who *who) {
    if (!who) {
        if (name)
            key(to, name);
        else
            separate(to);
        g_string_append(to, "null");
        return;
    }
    open(to, name, '{');
    number(to, "number", who->is_sum ? DT_NO_VALUE : (int64_t)who->number);
    text(to, "node", dt_who_node(who));
    text(to, "pid", who->pid);
    text(to, "name", who->name);
    text(to, "show", dt_who_show(who));
    close(to, '}');
}

/* -- The recording ---------------------------------------------------------------------- */

static void lost(GString *to, const struct dt_report *r) {
    number(to, "lost_events",
           r->lost_rows && r->lost_unknown ? DT_NO_VALUE : (int64_t)r->lost_events);
    open(to, "lost", '[');
    for (guint i = 0; i < r->lost->len; i++) {
        const struct dt_seen_lost *row = &g_array_index(r->lost, struct dt_seen_lost, i);
        open(to, NULL, '{');
        text(to, "node", name_of(row->node));
        text(to, "stream", row->stream);
        number(to, "begin", row->begin);
        number(to, "end", row->end);
        number(to, "count", row->count ? (int64_t)row->count : DT_NO_VALUE);
        close(to, '}');
    }
    close(to, ']');
}

static void nodes(GString *to, const struct dt_report *r) {
    open(to, "nodes", '[');
    for (guint i = 0; i < r->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(r->nodes, i);
        if (!node)
            continue;
        open(to, NULL, '{');
        text(to, "node", node->name);
        text(to, "host", node->hostname);
        number(to, "os_pid", node->os_pid);
        text(to, "otp", node->otp);
        count(to, "processes", node->processes);
        number(to, "begin", node->first);
        number(to, "end", node->last);
        close(to, '}');
    }
    close(to, ']');
}

static void kinds(GString *to, const struct dt_report *r) {
    open(to, "kinds", '[');
    for (unsigned i = 0; i < DT_TOLD; i++)
        if (r->told & 1U << i) {
            separate(to);
            dt_json_string(to, dt_told_words[i]);
        }
    close(to, ']');
}

static void recording(GString *to, const struct dt_report *r) {
    open(to, "recording", '{');
    count(to, "events", r->events);
    count(to, "skipped", r->skipped);
    number(to, "begin", r->begin);
    number(to, "end", r->end);
    key(to, "seconds");
    if (r->begin == DT_NO_VALUE)
        g_string_append(to, "null");
    else
        g_string_append_printf(to, "%" G_GINT64_FORMAT ".%09" G_GINT64_FORMAT,
                               (r->end - r->begin) / 1000000000, (r->end - r->begin) % 1000000000);
    lost(to, r);
    nodes(to, r);
    kinds(to, r);
    close(to, '}');
}

static void findings(GString *to, const struct dt_report *r) {
    open(to, "findings", '[');
    for (guint i = 0; i < r->findings->len; i++) {
        const struct dt_finding *finding = &g_array_index(r->findings, struct dt_finding, i);
        open(to, NULL, '{');
        text(to, "severity", dt_severity_names[finding->severity]);
        text(to, "text", finding->text);
        text(to, "about", finding->about);
        ref(to, "process", finding->who);
        close(to, '}');
    }
    close(to, ']');
}

/* -- Processes and ports ---------------------------------------------------------------- */

static void process(GString *to, const struct dt_who *who) {
    open(to, NULL, '{');
    ref(to, "process", who);
    ref(to, "parent", who->parent);
    text(to, "initial", who->initial);
    text(to, "label", who->label);
    text(to, "group", who->group);
    number(to, "began", who->began);
    number(to, "ended", who->ended);
    number(to, "run_ns", dt_who_ns(who, DT_TOLD_SCHEDULING, who->run));
    number(to, "runnable_ns", dt_who_ns(who, DT_TOLD_SCHEDULING, who->runnable));
    number(to, "waiting_ns", dt_who_ns(who, DT_TOLD_SCHEDULING, who->waiting));
    number(to, "collecting_ns", dt_who_ns(who, DT_TOLD_COLLECTIONS, who->collecting));
    number(to, "collections", dt_who_number(who, DT_TOLD_COLLECTIONS, who->collections));
    number(to, "longest_wait_ns", dt_who_ns(who, DT_TOLD_SCHEDULING, who->longest_wait));
    number(to, "longest_wait_at", who->longest_wait_at);
    number(to, "sent", dt_who_number(who, DT_TOLD_SENDS, who->sent));
    number(to, "received", dt_who_number(who, DT_TOLD_DELIVERIES, who->received));
    bool has_both = who->node && who->node->told & 1U << DT_TOLD_SENDS;
    number(to, "mailbox_max",
           has_both ? dt_who_number(who, DT_TOLD_DELIVERIES, who->mailbox_max) : DT_NO_VALUE);
    close(to, '}');
}

static void processes(GString *to, const struct dt_report *r) {
    open(to, "processes", '[');
    for (guint i = 0; i < r->processes.whos->len; i++)
        process(to, g_ptr_array_index(r->processes.whos, i));
    close(to, ']');
}

static void ports(GString *to, const struct dt_report *r) {
    open(to, "ports", '[');
    for (guint i = 0; i < r->ports.whos->len; i++) {
        const struct dt_who *port = g_ptr_array_index(r->ports.whos, i);
        open(to, NULL, '{');
        ref(to, "port", port);
        text(to, "driver", port->name);
        ref(to, "owner", port->parent);
        number(to, "messages_in", dt_who_number(port, DT_TOLD_DELIVERIES, port->received));
        number(to, "messages_out", dt_who_number(port, DT_TOLD_SENDS, port->sent));
        number(to, "bytes_out", dt_who_number(port, DT_TOLD_OUTPUT, port->bytes_out));
        number(to, "run_ns", dt_who_ns(port, DT_TOLD_SCHEDULING, port->run));
        close(to, '}');
    }
    close(to, ']');
}

/* -- Calls, spans, counters --------------------------------------------------------------- */

static void calls(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_report_calls(r);
    open(to, "calls", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        text(to, "node", name_of(row->node));
        text(to, "entry", row->name);
        count(to, "count", row->count);
        number(to, "total_ns", row->measured ? row->total : DT_NO_VALUE);
        number(to, "own_ns", row->measured ? row->own : DT_NO_VALUE);
        quantiles(to, "", &row->took, true);
        count(to, "exceptions", row->failed);
        count(to, "inferred", row->inferred);
        close(to, '}');
    }
    close(to, ']');
}

static void server_calls(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_report_server_calls(r);
    open(to, "server_calls", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        ref(to, "caller", row->only ? row->only : row->from);
        ref(to, "server", row->to);
        text(to, "request", row->text);
        text(to, "example", row->example);
        count(to, "count", row->count);
        quantiles(to, "", &row->took, true);
        quantiles(to, "queued_", &row->queued, false);
        quantiles(to, "worked_", &row->worked, false);
        count(to, "timeouts", row->timeouts);
        count(to, "downs", row->downs);
        close(to, '}');
    }
    close(to, ']');
}

static void spans(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_report_spans(r);
    open(to, "spans", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        text(to, "name", row->name);
        count(to, "count", row->count);
        quantiles(to, "", &row->took, true);
        count(to, "failed", row->failed);
        close(to, '}');
    }
    close(to, ']');
}

static void counters(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_report_counters(r);
    open(to, "counters", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_named *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        text(to, "node", name_of(row->node));
        text(to, "name", row->name);
        text(to, "unit", row->unit);
        number(to, "min", row->min);
        number(to, "max", row->max);
        number(to, "last", row->last);
        close(to, '}');
    }
    close(to, ']');
}

/* -- Messages --------------------------------------------------------------------------- */

static void talks(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->talks);
    open(to, "talks", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        ref(to, "from", row->from);
        ref(to, "to", row->to);
        count(to, "messages", row->count);
        count(to, "inferred", row->inferred);
        close(to, '}');
    }
    close(to, ']');
}

static void dead(GString *to, const struct dt_report *r) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&r->dead);
    open(to, "dead", '[');
    for (guint i = 0; i < rows->len; i++) {
        const struct dt_pair *row = g_ptr_array_index(rows, i);
        open(to, NULL, '{');
        ref(to, "from", row->from);
        ref(to, "to", row->to);
        text(to, "to_text", row->text);
        count(to, "messages", row->count);
        text(to, "example", row->example);
        close(to, '}');
    }
    close(to, ']');
}

/* -- Lists ------------------------------------------------------------------------------ */

static void exits(GString *to, const struct dt_listed *row) {
    ref(to, "process", row->who);
    number(to, "time", row->time);
    text(to, "reason", row->text);
    open(to, "linked", '[');
    for (guint i = 0; i < row->linked->len; i++)
        ref(to, NULL, g_ptr_array_index(row->linked, i));
    close(to, ']');
    boolean(to, "is_crash", true);
}

static void waits(GString *to, const struct dt_listed *row) {
    ref(to, "process", row->who);
    number(to, "time", row->time);
    number(to, "ns", row->ns);
    text(to, "function", row->text);
    boolean(to, "inferred", row->inferred);
}

static void collections(GString *to, const struct dt_listed *row) {
    ref(to, "process", row->who);
    number(to, "time", row->time);
    number(to, "ns", row->ns);
    boolean(to, "is_major", row->is_major);
    count(to, "reclaimed_words", row->reclaimed);
    count(to, "heap_words", row->heap);
}

static void log_lines(GString *to, const struct dt_listed *row) {
    ref(to, "process", row->who);
    text(to, "node", name_of(row->node));
    number(to, "time", row->time);
    text(to, "level", row->word);
    text(to, "text", row->text);
}

static void list(GString *to, const char *name, const struct dt_list *list,
                 void (*fields)(GString *, const struct dt_listed *)) {
    open(to, name, '[');
    for (guint i = 0; i < list->rows->len; i++) {
        open(to, NULL, '{');
        fields(to, &g_array_index(list->rows, struct dt_listed, i));
        close(to, '}');
    }
    close(to, ']');
}

/* -- Load ------------------------------------------------------------------------------- */

static void averages(GString *to, const char *name, const struct dt_report *r, bool is_told,
                     const int64_t *series) {
    if (!is_told) {
        number(to, name, DT_NO_VALUE);
        return;
    }
    open(to, name, '[');
    for (unsigned i = 0; i < dt_load_steps(r); i++) {
        separate(to);
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append(to, g_ascii_formatd(text, sizeof text, "%.4g",
                                            (double)series[i] / (double)dt_load_ns(r, i)));
    }
    close(to, ']');
}

static void counts(GString *to, const char *name, const struct dt_report *r, bool is_told,
                   const uint64_t *series) {
    if (!is_told) {
        number(to, name, DT_NO_VALUE);
        return;
    }
    open(to, name, '[');
    for (unsigned i = 0; i < dt_load_steps(r); i++) {
        separate(to);
        g_string_append_printf(to, "%" G_GUINT64_FORMAT, series[i]);
    }
    close(to, ']');
}

static void load(GString *to, const struct dt_report *r) {
    open(to, "load", '{');
    number(to, "begin", r->begin);
    number(to, "step_ns", r->step);
    open(to, "nodes", '[');
    for (guint i = 0; i < r->nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(r->nodes, i);
        if (!node)
            continue;
        bool is_scheduling = node->told & 1U << DT_TOLD_SCHEDULING;
        open(to, NULL, '{');
        text(to, "node", node->name);
        averages(to, "run", r, is_scheduling, node->load.run);
        averages(to, "collecting", r, node->told & 1U << DT_TOLD_COLLECTIONS,
                 node->load.collecting);
        averages(to, "runnable", r, is_scheduling, node->load.runnable);
        counts(to, "sent", r, node->told & 1U << DT_TOLD_SENDS, node->load.sent);
        counts(to, "calls", r, node->told & 1U << DT_TOLD_CALLS, node->load.calls);
        close(to, '}');
    }
    close(to, ']');
    close(to, '}');
}

static void left_out(GString *to, const struct dt_report *r) {
    open(to, "left_out", '{');
    open(to, "processes", '{');
    count(to, "count", r->processes.left_out);
    number(to, "run_ns", r->processes.run);
    number(to, "collecting_ns", r->processes.collecting);
    count(to, "sent", r->processes.sent);
    count(to, "received", r->processes.received);
    close(to, '}');
    count(to, "ports", r->ports.left_out);
    count(to, "talks", r->talks.left_out);
    count(to, "server_calls", r->server_calls.left_out);
    count(to, "dead", r->dead.left_out);
    count(to, "exits", r->crashes.left_out);
    count(to, "waits", r->waits.left_out);
    count(to, "collections", r->collections.left_out);
    count(to, "log", r->log.left_out);
    close(to, '}');
}

void dt_report_json(const struct dt_report *r, GString *to) {
    g_string_append_c(to, '{');
    count(to, "version", VERSION);
    recording(to, r);
    findings(to, r);
    processes(to, r);
    calls(to, r);
    server_calls(to, r);
    talks(to, r);
    dead(to, r);
    list(to, "exits", &r->crashes, exits);
    list(to, "waits", &r->waits, waits);
    list(to, "collections", &r->collections, collections);
    ports(to, r);
    spans(to, r);
    counters(to, r);
    list(to, "log", &r->log, log_lines);
    load(to, r);
    left_out(to, r);
    g_string_append_c(to, '}');
}
