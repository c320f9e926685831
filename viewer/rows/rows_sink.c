/*
 * The sink `rows`: the model as flat rows, for databases. A row is written when the model has all
 * of it, so rows are not in the order of time.
 */
#include <string.h>

#include "rows/row_lines.h"
#include "shared/collectors.h"
#include "summary/findings.h"
#include "summary/summary_events.h"

enum { PATH, RECORDING, RELEASE, SNAPSHOTS };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    [RECORDING] = DT_PARAM_STRING("recording", "", "the column `recording` of each row"),
    [RELEASE] = DT_PARAM_STRING("release", "", "the column `release` of each row"),
    [SNAPSHOTS] =
        DT_PARAM_STRING("snapshots", "",
                        "causes of snapshots, a line each: the time in ns, the cause, the "
                        "node, a text, separated by tabs"),
    {0},
};

struct sink {
    struct dt_collectors collectors; /* the rows, then the summary */
    struct dt_summary *summary;
    struct dt_row_lines *rows;
    const char *snapshots;
    GHashTable *processes; /* each struct of_process */
};

/* What the sink keeps about a process while it lives. */
struct of_process {
    GString *subject, *peer; /* the columns that name it; NULL until they are needed */
    GString *parent;         /* of its parent, which may exit before it; NULL if unknown */
    const char *exit;        /* how it exited, NULL if that is unknown */
    char *reason;
};

/* -- Begin and end ---------------------------------------------------------------------- */

static void free_columns(GString **columns) {
    if (*columns)
        g_string_free(g_steal_pointer(columns), true);
}

static void free_of_process(void *data) {
    struct of_process *of = data;

    free_columns(&of->subject);
    free_columns(&of->peer);
    free_columns(&of->parent);
    g_free(of->reason);
    g_free(of);
}

static const struct dt_sink own;

static void *start(const union dt_value *values, GError **error) {
    struct dt_row_lines *rows = dt_row_lines_open(values[PATH].string, values[RECORDING].string,
                                                  values[RELEASE].string, error);
    struct sink *s;

    if (!rows)
        return NULL;
    s = g_new0(struct sink, 1);
    s->rows = rows;
    s->snapshots = values[SNAPSHOTS].string;
    s->summary = dt_summary_new();
    s->collectors = (struct dt_collectors){{{&own, s}, {&dt_summary_collector, s->summary}}};
    s->processes = g_hash_table_new_full(NULL, NULL, free_of_process, NULL);
    return s;
}

static void free_sink(void *data) {
    struct sink *s = data;

    g_hash_table_destroy(s->processes);
    dt_summary_free(s->summary);
    dt_row_lines_free(s->rows);
    g_free(s);
}

static const GError *failed(void *data) {
    return dt_row_lines_failed(((struct sink *)data)->rows);
}

/* -- Columns of processes --------------------------------------------------------------- */

static struct of_process *of_process(struct sink *s, struct dt_process *process) {
    struct dt_actor *actor = dt_actor_of(&s->summary->actors, process);

    if (!actor->of_sink) {
        actor->of_sink = g_new0(struct of_process, 1);
        g_hash_table_add(s->processes, actor->of_sink);
    }
    return actor->of_sink;
}

static void put_subject(struct sink *s, struct dt_process *process) {
    if (!process)
        return;
    struct of_process *of = of_process(s, process);
    if (!of->subject) {
        of->subject = g_string_new(NULL);
        dt_column_text(of->subject, DT_COLUMN_process, process->pid);
        dt_column_number(of->subject, DT_COLUMN_process_number, (int64_t)process->number);
        dt_column_text(of->subject, DT_COLUMN_name, process->name);
        dt_column_text(of->subject, DT_COLUMN_initial_call, process->initial);
        dt_column_text(of->subject, DT_COLUMN_label, process->label);
    }
    dt_row_columns(s->rows, of->subject);
}

static GString *peer_columns(const struct dt_process *process) {
    GString *columns = g_string_new(NULL);

    dt_column_text(columns, DT_COLUMN_peer, process->pid);
    dt_column_number(columns, DT_COLUMN_peer_number, (int64_t)process->number);
    dt_column_text(columns, DT_COLUMN_peer_name, process->name);
    return columns;
}

static void put_peer(struct sink *s, struct dt_process *process, const struct dt_node *node) {
    struct of_process *of = of_process(s, process);

    if (!of->peer)
        of->peer = peer_columns(process);
    dt_row_columns(s->rows, of->peer);
    if (node && process->node != node)
        dt_row_text(s->rows, DT_COLUMN_peer_node, process->node->name);
}

/* -- Nodes and processes ---------------------------------------------------------------- */

static void node(void *data, struct dt_node *node) {
    const struct sink *s = data;

    dt_row_lines_node(s->rows, node);
}

static void process_named(void *data, struct dt_process *process, int64_t time) {
    struct of_process *of = of_process(data, process);

    (void)time;
    free_columns(&of->subject);
    free_columns(&of->peer);
    if (process->parent) {
        free_columns(&of->parent);
        of->parent = peer_columns(process->parent);
    }
}

static void process_exited(void *data, const struct dt_exit *exit) {
    struct of_process *of = of_process(data, exit->process);

    of->exit = dt_exit_kind_names[exit->kind];
    g_free(of->reason);
    of->reason = g_strdup(exit->reason);
}

static void process_gone(void *data, struct dt_process *process) {
    struct sink *s = data;
    struct of_process *of = of_process(s, process);
    bool is_spawned = process->began != DT_NO_VALUE;

    dt_row_begin(s->rows, process->node, DT_ROW_process,
                 is_spawned ? process->began : process->first);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, process->began, process->ended);
    put_subject(s, process);
    if (of->parent)
        dt_row_columns(s->rows, of->parent);
    dt_row_text(s->rows, DT_COLUMN_entity, dt_kind_names[process->kind]);
    dt_row_text(s->rows, DT_COLUMN_group_name, process->group);
    dt_row_flag(s->rows, DT_COLUMN_spawned, is_spawned);
    dt_row_text(s->rows, DT_COLUMN_exit, of->exit);
    dt_row_text(s->rows, DT_COLUMN_text, of->reason);
    dt_row_end(s->rows);
    ((struct dt_actor *)process->of_sink)->of_sink = NULL;
    g_hash_table_remove(s->processes, of);
}

static void put_bytes(struct sink *s, enum dt_column column, uint64_t words) {
    dt_row_number(s->rows, column, (int64_t)words * DT_BYTES_PER_WORD);
}

static void interval(void *data, const struct dt_interval *i) {
    struct sink *s = data;
    /* A port is idle between its runs; it does not wait. */
    bool is_idle = i->process->kind == DT_PORT && i->state == DT_STATE_WAITING;

    if (i->state == DT_STATE_UNKNOWN || is_idle)
        return;
    dt_row_begin(s->rows, i->process->node, DT_ROW_interval, i->begin);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, i->begin, i->end);
    put_subject(s, i->process);
    dt_row_text(s->rows, DT_COLUMN_state, dt_state_names[i->state]);
    if (i->scheduler)
        dt_row_text(s->rows, DT_COLUMN_scheduler, i->scheduler->name);
    dt_row_text(s->rows, DT_COLUMN_function, i->state == DT_STATE_RUNNING ? i->in : i->out);
    dt_row_flag(s->rows, DT_COLUMN_inferred, i->inferred);
    dt_row_flag(s->rows, DT_COLUMN_open, i->is_open);
    if (i->state == DT_STATE_COLLECTING && !i->is_open) {
        dt_row_flag(s->rows, DT_COLUMN_major, i->is_major);
        put_bytes(s, DT_COLUMN_reclaimed_bytes, i->reclaimed);
        put_bytes(s, DT_COLUMN_heap_bytes, i->heap);
        put_bytes(s, DT_COLUMN_old_heap_bytes, i->old_heap);
    }
    dt_row_end(s->rows);
}

/* -- Calls and messages ----------------------------------------------------------------- */

static void call_end(void *data, struct dt_frame *f) {
    struct sink *s = data;
    bool is_measured = dt_is_measured(f);

    dt_row_begin(s->rows, f->process->node, DT_ROW_call, f->begin);
    if (is_measured)
        dt_row_duration(s->rows, DT_COLUMN_duration_ns, f->begin, f->end);
    put_subject(s, f->process);
    dt_row_text(s->rows, DT_COLUMN_function, f->entry);
    dt_row_number(s->rows, DT_COLUMN_depth, f->depth);
    if (is_measured) {
        dt_row_number(s->rows, DT_COLUMN_own_ns, f->own);
        dt_row_number(s->rows, DT_COLUMN_waited_ns, f->waited);
    }
    dt_row_text(s->rows, DT_COLUMN_outcome, dt_left_names[f->left]);
    dt_row_text(s->rows, DT_COLUMN_class, f->class);
    dt_row_flag(s->rows, DT_COLUMN_inferred, f->inferred);
    dt_row_end(s->rows);
}

static const struct dt_node *node_of(const struct dt_message *m) {
    return m->from ? m->from->node : m->to ? m->to->node : NULL;
}

static void message_gone(void *data, struct dt_message *m) {
    struct sink *s = data;
    const struct dt_node *at = node_of(m);

    dt_row_begin(s->rows, at, DT_ROW_message, m->sent == DT_NO_VALUE ? m->delivered : m->sent);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, m->sent, m->delivered);
    put_subject(s, m->from);
    if (m->to)
        put_peer(s, m->to, at);
    else
        dt_row_text(s->rows, DT_COLUMN_peer, m->to_text);
    dt_row_text(s->rows, DT_COLUMN_matched, dt_matched_names[m->matched]);
    dt_row_flag(s->rows, DT_COLUMN_inferred, dt_is_inferred(m->matched));
    dt_row_flag(s->rows, DT_COLUMN_dead, m->is_dead);
    dt_row_text(s->rows, DT_COLUMN_trace_label, m->label);
    dt_row_text(s->rows, DT_COLUMN_text, m->text);
    dt_row_end(s->rows);
}

static void server_call(void *data, const struct dt_server_call *c) {
    struct sink *s = data;
    const struct dt_node *at = c->caller->node;

    dt_row_begin(s->rows, at, DT_ROW_server_call, c->began);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, c->began, c->ended);
    put_subject(s, c->caller);
    put_peer(s, c->server, at);
    dt_row_text(s->rows, DT_COLUMN_outcome, dt_outcome_names[c->outcome]);
    dt_row_duration(s->rows, DT_COLUMN_queued_ns,
                    c->delivered == DT_NO_VALUE ? c->began : c->delivered, c->taken);
    if (c->outcome == DT_OUTCOME_REPLY)
        dt_row_duration(s->rows, DT_COLUMN_served_ns, c->taken, c->ended);
    dt_row_text(s->rows, DT_COLUMN_text, c->request);
    dt_row_end(s->rows);
}

/* -- Spans, samples, counters, losses --------------------------------------------------- */

static void span(void *data, const struct dt_span *span) {
    struct sink *s = data;

    dt_row_begin(s->rows, span->process->node, DT_ROW_span, span->begin);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, span->begin, span->end);
    put_subject(s, span->process);
    dt_row_text(s->rows, DT_COLUMN_span, span->name);
    dt_row_text(s->rows, DT_COLUMN_outcome, span->outcome);
    dt_row_flag(s->rows, DT_COLUMN_open, span->is_open);
    dt_row_flag(s->rows, DT_COLUMN_telemetry, span->telemetry);
    if (span->telemetry) {
        dt_row_text(s->rows, DT_COLUMN_measurements, span->telemetry->measurements);
        dt_row_text(s->rows, DT_COLUMN_text, span->telemetry->metadata);
    }
    dt_row_end(s->rows);
}

static void sample(void *data, struct dt_process *process, const struct dt_process_sample *e,
                   int64_t time) {
    struct sink *s = data;

    dt_row_begin(s->rows, process->node, DT_ROW_sample, time);
    put_subject(s, process);
    dt_row_text(s->rows, DT_COLUMN_state, e->state);
    dt_row_text(s->rows, DT_COLUMN_function, e->entry);
    dt_row_number(s->rows, DT_COLUMN_queue_messages, (int64_t)e->queue);
    dt_row_number(s->rows, DT_COLUMN_memory_bytes, (int64_t)e->memory);
    dt_row_number(s->rows, DT_COLUMN_reductions, (int64_t)e->reductions);
    dt_row_end(s->rows);
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t time) {
    struct sink *s = data;

    dt_row_begin(s->rows, node, DT_ROW_counter, time);
    dt_row_text(s->rows, DT_COLUMN_counter, name);
    dt_row_number(s->rows, DT_COLUMN_value, value);
    dt_row_text(s->rows, DT_COLUMN_unit, unit);
    dt_row_end(s->rows);
}

static void lost(void *data, const struct dt_lost *lost) {
    struct sink *s = data;

    dt_row_begin(s->rows, lost->node, DT_ROW_lost, lost->begin);
    dt_row_duration(s->rows, DT_COLUMN_duration_ns, lost->begin, lost->end);
    if (lost->count)
        dt_row_number(s->rows, DT_COLUMN_value, (int64_t)lost->count);
    dt_row_text(s->rows, DT_COLUMN_text, lost->stream);
    dt_row_end(s->rows);
}

static const struct dt_sink own = {
    .node = node,
    .process = process_named,
    .process_named = process_named,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = interval,
    .call_end = call_end,
    .message_gone = message_gone,
    .server_call = server_call,
    .span = span,
    .sample = sample,
    .counter = counter,
    .lost = lost,
};

/* -- After the end of the model --------------------------------------------------------- */

/* A finding without a process concerns the node, if the recording has only one. */
static const struct dt_seen_node *node_of_finding(const struct sink *s,
                                                  const struct dt_finding *finding) {
    g_autoptr(GPtrArray) nodes = NULL;

    if (finding->actor && finding->actor->node)
        return finding->actor->node;
    nodes = dt_seen_nodes_known(&s->summary->actors.nodes);
    return nodes->len == 1 ? nodes->pdata[0] : NULL;
}

static void begin_of_node(struct sink *s, const struct dt_seen_node *node, enum dt_row_kind kind,
                          int64_t time) {
    dt_row_begin_late(s->rows, dt_seen_node_name(node), node ? node->otp : "", kind, time);
}

static void finding(struct sink *s, const struct dt_finding *finding) {
    const struct dt_actor *actor = finding->actor;

    begin_of_node(s, node_of_finding(s, finding), DT_ROW_finding, s->summary->period.begin);
    dt_row_number(s->rows, DT_COLUMN_duration_ns, dt_summary_ns(s->summary));
    if (actor && actor->is_sum)
        dt_row_text(s->rows, DT_COLUMN_name, dt_actor_show(actor));
    if (actor && !actor->is_sum) {
        dt_row_text(s->rows, DT_COLUMN_process, actor->pid);
        dt_row_number(s->rows, DT_COLUMN_process_number, (int64_t)actor->number);
        dt_row_text(s->rows, DT_COLUMN_name, actor->name);
        dt_row_text(s->rows, DT_COLUMN_initial_call, actor->initial);
        dt_row_text(s->rows, DT_COLUMN_label, actor->label);
    }
    dt_row_text(s->rows, DT_COLUMN_rule, finding->rule->name);
    dt_row_text(s->rows, DT_COLUMN_severity, dt_severity_names[finding->severity]);
    dt_row_text(s->rows, DT_COLUMN_text, finding->text);
    dt_row_end(s->rows);
}

static const char *otp_of(const struct sink *s, const char *name) {
    g_autoptr(GPtrArray) nodes = dt_seen_nodes_known(&s->summary->actors.nodes);

    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = nodes->pdata[i];

        if (strcmp(node->name, name) == 0)
            return node->otp;
    }
    return "";
}

static void snapshot(struct sink *s, const char *line) {
    enum { TIME, CAUSE, NODE, TEXT, FIELDS };
    g_auto(GStrv) fields = g_strsplit(line, "\t", FIELDS);

    if (g_strv_length(fields) < FIELDS)
        return;
    dt_row_begin_late(s->rows, fields[NODE], otp_of(s, fields[NODE]), DT_ROW_snapshot,
                      g_ascii_strtoll(fields[TIME], NULL, 10));
    dt_row_text(s->rows, DT_COLUMN_cause, fields[CAUSE]);
    dt_row_text(s->rows, DT_COLUMN_text, fields[TEXT]);
    dt_row_end(s->rows);
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct sink *s = data;
    g_auto(GStrv) snapshots = g_strsplit(s->snapshots, "\n", 0);

    if (s->summary->period.begin == DT_NO_VALUE)
        dt_nothing(DT_NOTHING_RECORDED);
    dt_summary_end(s->summary, model);
    dt_summary_find(s->summary);
    for (unsigned i = 0; i < s->summary->findings->len; i++)
        finding(s, &g_array_index(s->summary->findings, struct dt_finding, i));
    for (unsigned i = 0; snapshots[i]; i++)
        snapshot(s, snapshots[i]);
    return dt_row_lines_close(s->rows, error);
}

const struct dt_sink dt_sink_rows = {
    .description = "the model as flat rows, a line of JSON each, for databases",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .failed = failed,
    .collector = &dt_collect_all,
};
