#include "summary/summary_json.h"

#include <limits.h>

#include "shared/json.h"
#include "summary/findings.h"
#include "summary/findings/limits.h"
#include "summary/sorted_rows.h"

enum { VERSION = 1 };

static void count(GString *to, const char *name, uint64_t value) {
    dt_json_number(to, name, (int64_t)value);
}

static void quantiles(GString *to, const char *prefix, const struct dt_quantiles *q) {
    const struct {
        const char *name;
        int64_t value;
    } shown[] = {
        {"p50", dt_quantile(q, 0.5)}, {"p99", dt_quantile_p99(q)}, {"max", dt_quantiles_max(q)}};
    char name[32];

    for (size_t i = 0; i < G_N_ELEMENTS(shown); i++) {
        g_snprintf(name, sizeof name, "%s%s_ns", prefix, shown[i].name);
        dt_json_number(to, name, shown[i].value);
    }
}

/* How sure the quantiles are. */
static void limits(GString *to, const char *prefix, const struct dt_quantiles *q) {
    const struct {
        const char *name;
        int64_t value;
    } shown[] = {{"durations", (int64_t)q->count},
                 {"p50_lower_ns", dt_quantile_lower(q, 0.5)},
                 {"p50_upper_ns", dt_quantile_upper(q, 0.5)},
                 {"p99_lower_ns", dt_quantile_lower(q, 0.99)},
                 {"p99_upper_ns", dt_quantile_upper(q, 0.99)}};
    char name[32];

    for (size_t i = 0; i < G_N_ELEMENTS(shown); i++) {
        g_snprintf(name, sizeof name, "%s%s", prefix, shown[i].name);
        dt_json_number(to, name, shown[i].value);
    }
}

/* A negative number is unknown. */
static void number(GString *to, const char *name, double number) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    if (number < 0) {
        dt_json_null(to, name);
        return;
    }
    dt_json_name(to, name);
    g_string_append(to, g_ascii_formatd(text, sizeof text, "%.6g", number));
}

static void ref(GString *to, const char *name, const struct dt_actor *actor) {
    if (!actor) {
        dt_json_null(to, name);
        return;
    }
    dt_json_open(to, name, '{');
    dt_json_number(to, "number", actor->is_sum ? DT_NO_VALUE : (int64_t)actor->number);
    dt_json_text(to, "node", dt_seen_node_name(actor->node));
    dt_json_text(to, "pid", actor->pid);
    dt_json_text(to, "name", actor->name);
    dt_json_text(to, "show", dt_actor_show(actor));
    dt_json_close(to, '}');
}

/* An array with one object per row. */
struct table {
    const char *name;
    dt_rows *rows;
    void (*members)(GString *to, const void *row);
};

static void put_table(GString *to, const struct dt_summary *summary, const struct table *table) {
    g_autoptr(GPtrArray) rows = table->rows(summary);

    dt_json_open(to, table->name, '[');
    for (unsigned i = 0; i < rows->len; i++) {
        dt_json_open(to, NULL, '{');
        table->members(to, g_ptr_array_index(rows, i));
        dt_json_close(to, '}');
    }
    dt_json_close(to, ']');
}

/* -- The recording ---------------------------------------------------------------------- */

static void lost(GString *to, const void *row) {
    const struct dt_seen_lost *lost = row;

    dt_json_text(to, "node", dt_seen_node_name(lost->node));
    dt_json_text(to, "stream", lost->stream);
    dt_json_number(to, "begin", lost->begin);
    dt_json_number(to, "end", lost->end);
    dt_json_number(to, "count", lost->count ? (int64_t)lost->count : DT_NO_VALUE);
}

static void node(GString *to, const void *row) {
    const struct dt_seen_node *node = row;

    dt_json_text(to, "node", node->name);
    dt_json_text(to, "host", node->hostname);
    dt_json_number(to, "os_pid", node->os_pid);
    dt_json_text(to, "otp", node->otp);
    count(to, "processes", node->processes);
    dt_json_number(to, "begin", node->first);
    dt_json_number(to, "end", node->last);
    dt_json_number(to, "traced_ns", dt_seen_node_traced(node));
    if (!node->clock) {
        dt_json_null(to, "clock");
        return;
    }
    dt_json_open(to, "clock", '{');
    dt_json_number(to, "number", node->clock->number);
    dt_json_text(to, "known", dt_clock_words[node->clock->known]);
    dt_json_number(to, "offset_ns", node->clock->offset);
    dt_json_number(to, "uncertainty_ns", node->clock->uncertainty);
    dt_json_close(to, '}');
}

static void kinds(GString *to, const struct dt_summary *summary) {
    dt_json_open(to, "kinds", '[');
    for (unsigned i = 0; i < DT_RECORDED_KINDS; i++)
        if (dt_is_recorded(summary->recorded, i))
            dt_json_text(to, NULL, dt_recorded_kind_words[i]);
    dt_json_close(to, ']');
}

static void seconds(GString *to, const struct dt_summary *summary) {
    int64_t ns = dt_summary_ns(summary);

    if (summary->period.begin == DT_NO_VALUE) {
        dt_json_null(to, "seconds");
        return;
    }
    dt_json_name(to, "seconds");
    g_string_append_printf(to, "%" PRId64 ".%09" PRId64, ns / DT_NS_PER_S, ns % DT_NS_PER_S);
}

static void recording(GString *to, const struct dt_summary *summary) {
    bool is_unknown = summary->lost_rows && summary->lost_unknown;

    dt_json_open(to, "recording", '{');
    count(to, "events", summary->events);
    count(to, "skipped", summary->skipped);
    dt_json_number(to, "begin", summary->period.begin);
    dt_json_number(to, "end", summary->period.end);
    seconds(to, summary);
    dt_json_number(to, "untraced_ns", dt_summary_untraced(summary));
    dt_json_number(to, "lost_events", is_unknown ? DT_NO_VALUE : (int64_t)summary->lost_events);
    put_table(to, summary, &(struct table){"lost", dt_rows_lost, lost});
    put_table(to, summary, &(struct table){"nodes", dt_rows_nodes, node});
    kinds(to, summary);
    dt_json_close(to, '}');
}

static void finding(GString *to, const void *row) {
    const struct dt_finding *finding = row;

    dt_json_text(to, "severity", dt_severity_names[finding->severity]);
    dt_json_text(to, "text", finding->text);
    dt_json_text(to, "about", finding->rule->about);
    ref(to, "process", finding->actor);
    dt_json_text(to, "rule", finding->rule->name);
    dt_json_text(to, "next", finding->rule->next);
}

/* -- Processes and ports ---------------------------------------------------------------- */

static void process(GString *to, const void *row) {
    const struct dt_actor *actor = row;

    ref(to, "process", actor);
    ref(to, "parent", actor->parent);
    dt_json_text(to, "initial", actor->initial);
    dt_json_text(to, "label", actor->label);
    dt_json_text(to, "group", actor->group);
    dt_json_number(to, "began", actor->began);
    dt_json_number(to, "ended", actor->ended);
    dt_json_number(to, "run_ns", dt_activity_ns(actor, actor->activity->run));
    dt_json_number(to, "dirty_cpu_ns", dt_activity_ns(actor, actor->activity->dirty_cpu));
    dt_json_number(to, "dirty_io_ns", dt_activity_ns(actor, actor->activity->dirty_io));
    dt_json_number(to, "runnable_ns", dt_activity_ns(actor, actor->activity->runnable));
    dt_json_number(to, "waiting_ns", dt_activity_ns(actor, actor->activity->waiting));
    dt_json_number(to, "collecting_ns", dt_activity_collecting(actor));
    dt_json_number(
        to, "collections",
        dt_activity_number(actor, DT_RECORDED_COLLECTIONS, actor->activity->collections));
    dt_json_number(to, "longest_wait_ns", dt_activity_ns(actor, actor->activity->longest_wait));
    dt_json_number(to, "longest_wait_at", actor->activity->longest_wait_at);
    dt_json_number(to, "sent", dt_activity_number(actor, DT_RECORDED_SENDS, actor->activity->sent));
    dt_json_number(to, "received",
                   dt_activity_number(actor, DT_RECORDED_DELIVERIES, actor->activity->received));
    dt_json_number(to, "mailbox_max", dt_activity_mailbox_max(actor));
    dt_json_number(to, "queue_max", dt_activity_queue_max(actor));
    dt_json_number(to, "memory_max", dt_activity_memory_max(actor));
}

static void level(GString *to, const char *what, const char *unit, uint64_t samples,
                  const struct dt_level *level) {
    char name[32];

    g_snprintf(name, sizeof name, "%s_max%s", what, unit);
    dt_json_number(to, name, samples ? (int64_t)level->max : DT_NO_VALUE);
    g_snprintf(name, sizeof name, "%s_mean%s", what, unit);
    number(to, name, samples ? (double)level->sum / (double)samples : -1);
}

/* The processes of a name, or of an initial call. */
static void total(GString *to, const void *row) {
    const struct dt_total *total = row;

    dt_json_text(to, "node", dt_seen_node_name(total->node));
    dt_json_text(to, "name", total->name);
    for (unsigned i = 0; i < DT_TOTALS; i++) {
        const struct dt_total_kind *kind = &dt_total_kinds[i];
        char name[40];

        g_snprintf(name, sizeof name, "%s%s", kind->name, kind->unit);
        bool is_recorded = total->node && dt_is_recorded(total->node->recorded, kind->recorded);
        dt_json_number(to, name, is_recorded ? (int64_t)total->of[i].total : DT_NO_VALUE);
        g_snprintf(name, sizeof name, "%s_deviation%s", kind->name, kind->unit);
        number(to, name, is_recorded ? dt_slices_deviation(&total->of[i]) : -1);
    }
    count(to, "samples", total->samples);
    level(to, "memory", "_bytes", total->samples, &total->memory);
    level(to, "queue", "", total->samples, &total->queue);
}

static void port(GString *to, const void *row) {
    const struct dt_actor *port = row;

    ref(to, "port", port);
    dt_json_text(to, "driver", port->name);
    ref(to, "owner", dt_actor_owner(port));
    dt_json_number(to, "messages_in",
                   dt_activity_number(port, DT_RECORDED_DELIVERIES, port->activity->received));
    dt_json_number(to, "messages_out",
                   dt_activity_number(port, DT_RECORDED_SENDS, port->activity->sent));
    dt_json_number(to, "bytes_out",
                   dt_activity_number(port, DT_RECORDED_OUTPUT, port->activity->bytes_out));
    dt_json_number(to, "run_ns", dt_activity_ns(port, port->activity->run));
}

/* -- Calls, spans, counters --------------------------------------------------------------- */

static void call(GString *to, const void *row) {
    const struct dt_named *call = row;

    dt_json_text(to, "node", dt_seen_node_name(call->node));
    dt_json_text(to, "entry", call->name);
    count(to, "count", call->count);
    dt_json_number(to, "total_ns", call->measured ? call->total : DT_NO_VALUE);
    dt_json_number(to, "own_ns", call->measured ? call->own : DT_NO_VALUE);
    quantiles(to, "", &call->took);
    limits(to, "", &call->took);
    number(to, "count_deviation", dt_slices_deviation(&call->slices));
    count(to, "exceptions", call->failed);
    count(to, "inferred", call->inferred);
}

static void put_term(GString *to, const char *name, const struct dt_pair *pair, const char *term) {
    g_autofree char *text = dt_pair_term(pair, term);

    dt_json_text(to, name, text);
}

static void server_call(GString *to, const void *row) {
    const struct dt_pair *call = row;

    ref(to, "caller", call->only ? call->only : call->from);
    ref(to, "server", call->to);
    put_term(to, "request", call, call->text);
    put_term(to, "example", call, call->example);
    count(to, "count", call->count);
    quantiles(to, "", &call->took);
    quantiles(to, "queued_", &call->queued);
    quantiles(to, "runnable_", &call->runnable);
    quantiles(to, "worked_", &call->worked);
    quantiles(to, "deferred_", &call->deferred);
    count(to, "timeouts", call->timeouts);
    count(to, "downs", call->downs);
}

/* The calls of all callers. */
static void server(GString *to, const void *row) {
    const struct dt_pair *calls = row;

    dt_json_text(to, "node", calls->to ? dt_seen_node_name(calls->to->node) : "");
    dt_json_text(to, "server", dt_actor_show(calls->to));
    put_term(to, "request", calls, calls->text);
    count(to, "count", calls->count);
    number(to, "count_deviation", dt_slices_deviation(&calls->slices));
    quantiles(to, "", &calls->took);
    limits(to, "", &calls->took);
    quantiles(to, "worked_", &calls->worked);
    limits(to, "worked_", &calls->worked);
    count(to, "timeouts", calls->timeouts);
}

static void span(GString *to, const void *row) {
    const struct dt_named *span = row;

    dt_json_text(to, "name", span->name);
    count(to, "count", span->count);
    quantiles(to, "", &span->took);
    limits(to, "", &span->took);
    number(to, "count_deviation", dt_slices_deviation(&span->slices));
    count(to, "failed", span->failed);
}

/* Without a duration, the event has no times. */
static void telemetry(GString *to, const void *row) {
    const struct dt_named *kind = row;

    span(to, kind);
    dt_json_number(to, "total_ns", kind->took.count ? kind->total : DT_NO_VALUE);
    dt_json_open(to, "parts", '[');
    for (unsigned i = 0; kind->parts && i < kind->parts->len; i++) {
        const struct dt_part *part = &g_array_index(kind->parts, struct dt_part, i);

        dt_json_open(to, NULL, '{');
        dt_json_text(to, "name", part->of->name);
        dt_json_number(to, "total_ns", part->ns);
        dt_json_close(to, '}');
    }
    dt_json_close(to, ']');
}

static void counter(GString *to, const void *row) {
    const struct dt_named *counter = row;

    dt_json_text(to, "node", dt_seen_node_name(counter->node));
    dt_json_text(to, "name", counter->name);
    dt_json_text(to, "unit", counter->unit);
    dt_json_number(to, "min", counter->min);
    dt_json_number(to, "max", counter->max);
    dt_json_number(to, "last", counter->last);
    count(to, "samples", counter->count);
    number(to, "mean", counter->count ? counter->sum / (double)counter->count : -1);
}

/* -- Messages --------------------------------------------------------------------------- */

static void talk(GString *to, const void *row) {
    const struct dt_pair *talk = row;

    ref(to, "from", talk->from);
    ref(to, "to", talk->to);
    count(to, "messages", talk->count);
    count(to, "inferred", talk->inferred);
}

static void dead(GString *to, const void *row) {
    const struct dt_pair *dead = row;

    ref(to, "from", dead->from);
    ref(to, "to", dead->to);
    dt_json_text(to, "to_text", dead->text);
    count(to, "messages", dead->count);
    put_term(to, "example", dead, dead->example);
}

static void request(GString *to, const void *row) {
    const struct dt_request *request = row;

    dt_json_text(to, "label", request->label);
    dt_json_number(to, "begin", request->begin);
    dt_json_number(to, "end", request->end);
    count(to, "messages", request->messages);
    count(to, "between_nodes", request->between_nodes);
    count(to, "processes", g_hash_table_size(request->processes));
    dt_json_open(to, "nodes", '[');
    for (unsigned i = 0; i < request->nodes->len; i++)
        dt_json_text(to, NULL, dt_seen_node_name(g_ptr_array_index(request->nodes, i)));
    dt_json_close(to, ']');
}

/* -- Lists ------------------------------------------------------------------------------ */

static void exited(GString *to, const void *row) {
    const struct dt_listed *exited = row;

    ref(to, "process", exited->actor);
    dt_json_number(to, "time", exited->time);
    dt_json_text(to, "reason", exited->text);
    dt_json_open(to, "linked", '[');
    for (unsigned i = 0; i < exited->linked->len; i++)
        ref(to, NULL, g_ptr_array_index(exited->linked, i));
    dt_json_close(to, ']');
    dt_json_boolean(to, "is_crash", true);
}

static void waited(GString *to, const void *row) {
    const struct dt_listed *wait = row;

    ref(to, "process", wait->actor);
    dt_json_number(to, "time", wait->time);
    dt_json_number(to, "ns", wait->ns);
    dt_json_text(to, "function", wait->text);
    dt_json_boolean(to, "inferred", wait->inferred);
}

static void collection(GString *to, const void *row) {
    const struct dt_listed *collection = row;

    ref(to, "process", collection->actor);
    dt_json_number(to, "time", collection->time);
    dt_json_number(to, "ns", collection->ns);
    dt_json_boolean(to, "is_major", collection->is_major);
    dt_json_boolean(to, "is_stretched", collection->is_stretched);
    count(to, "reclaimed_words", collection->reclaimed);
    count(to, "heap_words", collection->heap);
}

static void logged(GString *to, const void *row) {
    const struct dt_listed *line = row;

    ref(to, "process", line->actor);
    dt_json_text(to, "node", dt_seen_node_name(line->node));
    dt_json_number(to, "time", line->time);
    dt_json_text(to, "level", line->word);
    dt_json_text(to, "text", line->text);
}

static void other(GString *to, const void *row) {
    const struct dt_listed *event = row;

    ref(to, "process", event->actor);
    dt_json_text(to, "node", dt_seen_node_name(event->node));
    dt_json_number(to, "time", event->time);
    dt_json_text(to, "event", event->word);
    dt_json_text(to, "fields", event->text);
}

/* -- Load ------------------------------------------------------------------------------- */

static void loaded(GString *to, const struct dt_summary *summary, const struct dt_seen_node *node,
                   enum dt_load_number load) {
    const struct dt_load_kind *kind = &dt_load_kinds[load];
    const int64_t *series = dt_load_of(&summary->load, node, load);
    char average[G_ASCII_DTOSTR_BUF_SIZE];
    if (!dt_is_recorded(node->recorded, kind->recorded)) {
        dt_json_null(to, kind->name);
        return;
    }
    dt_json_open(to, kind->name, '[');
    for (unsigned i = 0; i < dt_load_steps(&summary->load, &summary->period); i++) {
        if (!kind->is_time) {
            dt_json_number(to, NULL, series[i]);
            continue;
        }
        dt_json_name(to, NULL);
        g_string_append(
            to, g_ascii_formatd(average, sizeof average, "%.4g",
                                (double)series[i] /
                                    (double)dt_load_ns(&summary->load, &summary->period, i)));
    }
    dt_json_close(to, ']');
}

static void load(GString *to, const struct dt_summary *summary) {
    g_autoptr(GPtrArray) nodes = dt_rows_nodes(summary);

    dt_json_open(to, "load", '{');
    dt_json_number(to, "begin", summary->period.begin);
    dt_json_number(to, "step_ns", summary->load.step);
    dt_json_open(to, "nodes", '[');
    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);

        dt_json_open(to, NULL, '{');
        dt_json_text(to, "node", node->name);
        for (unsigned n = 0; n < DT_LOADS; n++)
            loaded(to, summary, node, n);
        dt_json_close(to, '}');
    }
    dt_json_close(to, ']');
    dt_json_close(to, '}');
}

static void left_out(GString *to, const struct dt_summary *summary) {
    dt_json_open(to, "left_out", '{');
    dt_json_open(to, "processes", '{');
    count(to, "count", summary->processes.left_out);
    dt_json_number(to, "run_ns", summary->processes.run);
    dt_json_number(to, "collecting_ns", summary->processes.collecting);
    count(to, "sent", summary->processes.sent);
    count(to, "received", summary->processes.received);
    dt_json_close(to, '}');
    count(to, "ports", summary->ports.left_out);
    count(to, "talks", summary->talks.left_out);
    count(to, "requests", summary->requests.left_out);
    count(to, "server_calls", summary->server_calls.left_out);
    count(to, "dead", summary->dead.left_out);
    count(to, "exits", summary->crashes.left_out);
    count(to, "waits", summary->waits.left_out);
    count(to, "collections", summary->collections.left_out);
    count(to, "log", summary->log.left_out);
    count(to, "others", summary->others.left_out);
    dt_json_close(to, '}');
}

/* docs/report.md describes the tables. */
static const struct table tables[] = {
    {"findings", dt_rows_findings, finding},
    {"processes", dt_rows_processes, process},
    {"totals", dt_rows_totals, total},
    {"calls", dt_rows_calls, call},
    {"server_calls", dt_rows_server_calls, server_call},
    {"talks", dt_rows_talks, talk},
    {"requests", dt_rows_requests, request},
    {"dead", dt_rows_dead, dead},
    {"exits", dt_rows_crashes, exited},
    {"waits", dt_rows_waits, waited},
    {"collections", dt_rows_collections, collection},
    {"ports", dt_rows_ports, port},
    {"spans", dt_rows_spans, span},
    {"telemetry", dt_rows_telemetry, telemetry},
    {"counters", dt_rows_counters, counter},
    {"log", dt_rows_log, logged},
    {"others", dt_rows_others, other},
};

/* The table is made for this output only. */
static void servers(GString *to, const struct dt_summary *summary) {
    struct dt_pairs pairs;

    dt_pairs_init(&pairs, UINT_MAX);
    dt_pairs_add_receivers(&pairs, &summary->server_calls);
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(&pairs);
    dt_json_open(to, "servers", '[');
    for (unsigned i = 0; i < rows->len; i++) {
        dt_json_open(to, NULL, '{');
        server(to, g_ptr_array_index(rows, i));
        dt_json_close(to, '}');
    }
    dt_json_close(to, ']');
    dt_pairs_free(&pairs);
}

void dt_summary_json(const struct dt_summary *summary, GString *to) {
    dt_json_open(to, NULL, '{');
    dt_json_number(to, "version", VERSION);
    recording(to, summary);
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++)
        put_table(to, summary, &tables[i]);
    servers(to, summary);
    load(to, summary);
    left_out(to, summary);
    dt_json_close(to, '}');
}
