/*
 * Dumps the events of the model, one per line, to test the model:
 *
 *     TIME KIND KEY=VALUE...
 *
 * Times are ns after the first event, or `-` if unknown. A process is its identifier, a `#` and its
 * number. Texts are quoted like C strings; names of functions and counters are escaped in the same
 * way, but not quoted.
 */

#include "dump/dump_lines.h"
#include "model/model.h"
#include "shared/probe_fields.h"

/* The items of a line; those with IF are for lines that do not always have them. */
#define ITEM(type_, name_, ...)                                                                    \
    { .name = (name_), .type = (type_), __VA_ARGS__ }
#define AT(of, field) ITEM(DT_AT, #field, .number = (of)->field)
#define NUMBER_IF(is, name, n) ITEM((is) ? DT_COUNT : DT_NONE, name, .number = (int64_t)(n))
#define NUMBER(name, n) NUMBER_IF(true, name, n)
#define WORD_IF(is, name, word) ITEM((is) ? DT_NAME : DT_NONE, name, .text = (word))
#define WORD(name, word) WORD_IF(true, name, word)
#define TEXT_OF(name, string) ITEM(DT_TEXT, name, .text = (string))
#define TEXT(of, field) TEXT_OF(#field, (of)->field)
#define PROCESS(name, p) ITEM(DT_ID, name, .process = (p))
#define FLAG_IF(is, name) ITEM(DT_FLAG, name, .number = (is))
#define FLAG(of, field) FLAG_IF((of)->field, #field)

#define ADD(data, ...) dt_line_add(data, (const struct dt_item[]){__VA_ARGS__, {0}})
#define LINE(data, time, kind, ...)                                                                \
    do {                                                                                           \
        dt_line_begin(data, time, kind);                                                           \
        ADD(data, __VA_ARGS__);                                                                    \
        dt_line_end(data);                                                                         \
    } while (0)

enum { PATH };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    {0},
};

static void *start(const union dt_value *values, GError **error) {
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    struct dt_lines *s;

    if (!file)
        return NULL;
    s = g_new0(struct dt_lines, 1);
    s->file = file;
    s->line = g_string_new("");
    s->base = DT_NO_VALUE;
    return s;
}

static void free_sink(void *data) {
    struct dt_lines *s = data;

    dt_file_discard(s->file);
    g_string_free(s->line, true);
    g_free(s);
}

/* -- Nodes and processes --------------------------------------------------------------- */

static void node_line(void *data, const char *kind, const struct dt_node *node) {
    static const struct dt_clock none;
    const struct dt_clock *clock = node->clock ? node->clock : &none;

    LINE(data, node->last, kind, NUMBER("number", node->number), TEXT(node, name),
         TEXT(node, hostname), NUMBER("os_pid", node->os_pid), TEXT(node, otp),
         NUMBER_IF(node->clock, "clock", clock->number),
         TEXT_OF("known", node->clock ? dt_clock_words[clock->known] : ""),
         NUMBER_IF(node->clock, "offset", clock->offset),
         NUMBER_IF(node->clock, "uncertainty", clock->uncertainty));
}

static void node(void *data, struct dt_node *node) {
    node_line(data, "node", node);
}

static void node_gone(void *data, struct dt_node *node) {
    node_line(data, "node_gone", node);
}

static void scheduler(void *data, struct dt_scheduler *s) {
    LINE(data, s->node->last, "scheduler", NUMBER("number", s->number),
         NUMBER("node", s->node->number), NUMBER("id", s->id), TEXT(s, name), FLAG(s, is_cpu),
         WORD_IF(s->kind, "kind", dt_scheduler_kind_names[s->kind]));
}

static void process_line(void *data, const char *kind, const struct dt_process *p, int64_t now) {
    LINE(data, now, kind, PROCESS("process", p), NUMBER("node", p->node->number),
         WORD("kind", dt_kind_names[p->kind]), PROCESS("parent", p->parent), AT(p, began),
         AT(p, first), AT(p, ended), TEXT(p, name), TEXT(p, initial), TEXT(p, label),
         TEXT(p, group), TEXT(p, show));
}

static void process(void *data, struct dt_process *p, int64_t now) {
    process_line(data, "process", p, now);
}

static void process_named(void *data, struct dt_process *p, int64_t now) {
    process_line(data, "process_named", p, now);
}

static void process_gone(void *data, struct dt_process *p) {
    process_line(data, "process_gone", p, p->node->last);
}

static void process_exited(void *data, const struct dt_exit *exit) {
    dt_line_begin(data, exit->time, "process_exited");
    ADD(data, PROCESS("process", exit->process), WORD("kind", dt_exit_kind_names[exit->kind]));
    for (unsigned i = 0; i < exit->links; i++)
        ADD(data, PROCESS("linked", exit->linked[i]));
    ADD(data, TEXT(exit, reason));
    dt_line_end(data);
}

static void interval(void *data, const struct dt_interval *i) {
    bool is_gc = i->state == DT_STATE_COLLECTING;

    LINE(data, i->end, "interval", PROCESS("process", i->process),
         WORD("state", dt_state_names[i->state]), AT(i, begin), AT(i, end), FLAG(i, inferred),
         FLAG(i, is_open),
         NUMBER_IF(i->scheduler, "scheduler", i->scheduler ? i->scheduler->number : 0), TEXT(i, in),
         TEXT(i, out), FLAG_IF(is_gc && i->is_major, "is_major"),
         FLAG_IF(is_gc && dt_is_stretched(i), "is_stretched"),
         NUMBER_IF(is_gc, "reclaimed", i->reclaimed), NUMBER_IF(is_gc, "heap", i->heap),
         NUMBER_IF(is_gc, "old_heap", i->old_heap),
         NUMBER_IF(is_gc && i->binaries, "binaries", i->binaries));
}

static void mailbox(void *data, struct dt_process *p, int64_t now) {
    LINE(data, now, "mailbox", PROCESS("process", p), NUMBER("messages", p->mailbox));
}

/* -- Calls ----------------------------------------------------------------------------- */

#define FRAME(f)                                                                                   \
    NUMBER("number", (f)->number), PROCESS("process", (f)->process), WORD("entry", (f)->entry),    \
        NUMBER("depth", (f)->depth)

static void call_begin(void *data, struct dt_frame *f) {
    LINE(data, f->begin, "call_begin", FRAME(f), FLAG(f, inferred));
}

static void call_end(void *data, struct dt_frame *f) {
    LINE(data, f->end, "call_end", FRAME(f), AT(f, begin), AT(f, end),
         WORD("left", dt_left_names[f->left]), NUMBER("own", f->own), NUMBER("waited", f->waited),
         FLAG(f, inferred), FLAG(f, has_return), TEXT(f, class), TEXT(f, value));
}

static void arguments(void *data, struct dt_frame *f, const char *arguments) {
    LINE(data, f->begin, "arguments", FRAME(f), TEXT_OF("arguments", arguments));
}

/* -- Messages -------------------------------------------------------------------------- */

static void message_line(void *data, const char *kind, const struct dt_message *m, int64_t now) {
    LINE(data, now, kind, NUMBER("number", m->number), PROCESS("from", m->from),
         PROCESS("to", m->to), AT(m, sent), AT(m, delivered),
         WORD("matched", dt_matched_names[m->matched]), FLAG(m, is_dead),
         NUMBER_IF(m->early, "early", m->early), TEXT(m, to_text), TEXT(m, label), TEXT(m, timer),
         TEXT(m, text));
}

static void sent(void *data, struct dt_message *m) {
    message_line(data, "sent", m, m->sent);
}

static void delivered(void *data, struct dt_message *m) {
    message_line(data, "delivered", m, m->delivered);
}

static void message_gone(void *data, struct dt_message *m) {
    message_line(data, "message_gone", m, m->delivered == DT_NO_VALUE ? m->sent : m->delivered);
}

static void server_call(void *data, const struct dt_server_call *c) {
    LINE(data, c->ended, "server_call", PROCESS("caller", c->caller), PROCESS("server", c->server),
         WORD("outcome", dt_outcome_names[c->outcome]), AT(c, began), AT(c, delivered),
         AT(c, taken),
         ITEM(c->deferred == DT_NO_VALUE ? DT_NONE : DT_AT, "deferred", .number = c->deferred),
         NUMBER_IF(c->runnable, "runnable", c->runnable), AT(c, ended), TEXT(c, request),
         TEXT(c, reply));
}

/* -- Other events ---------------------------------------------------------------------- */

static void span(void *data, const struct dt_span *span) {
    LINE(data, span->end, "span", PROCESS("process", span->process), NUMBER("id", span->id),
         AT(span, begin), AT(span, end), FLAG(span, is_open), TEXT(span, outcome), TEXT(span, name),
         TEXT_OF("metadata", span->telemetry ? span->telemetry->metadata : ""));
}

static void instant(void *data, const struct dt_instant *i) {
    g_autoptr(GString) fields = g_string_new(NULL);

    if (i->is_general)
        dt_fields_text(fields, i->event);
    LINE(data, i->event->time, "instant", WORD("probe", dt_probe_names[i->event->probe]),
         NUMBER("node", i->node->number), PROCESS("process", i->process),
         PROCESS("other", i->other), TEXT_OF("fields", fields->str));
}

static void sample(void *data, struct dt_process *process, const struct dt_process_sample *e,
                   int64_t now) {
    LINE(data, now, "sample", PROCESS("process", process), NUMBER("queue", e->queue),
         NUMBER("memory", e->memory), NUMBER("reductions", e->reductions), TEXT(e, entry),
         TEXT(e, state));
}

static void table(void *data, struct dt_process *owner, const struct dt_table_sample *e,
                  int64_t now) {
    LINE(data, now, "table", PROCESS("owner", owner), WORD("table", e->table),
         WORD("name", e->name), NUMBER("memory", e->memory), NUMBER("objects", e->objects));
}

static void port_queue(void *data, struct dt_process *port, const struct dt_port_sample *e,
                       int64_t now) {
    LINE(data, now, "port_queue", PROCESS("port", port), NUMBER("queue", e->queue),
         NUMBER("sent", e->sent));
}

static void sockets(void *data, struct dt_process *owner, const struct dt_socket_sample *e,
                    int64_t now) {
    LINE(data, now, "sockets", PROCESS("owner", owner), NUMBER("sockets", e->sockets),
         TEXT(e, name));
}

static void wait(void *data, struct dt_process *process, struct dt_process *target,
                 const struct dt_process_wait *e, int64_t now) {
    LINE(data, now, "wait", PROCESS("process", process), PROCESS("target", target), TEXT(e, kind),
         NUMBER("callers", e->callers));
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t now) {
    LINE(data, now, "counter", NUMBER("node", node->number), WORD("name", name),
         NUMBER("value", value), TEXT_OF("unit", unit));
}

static void lost(void *data, const struct dt_lost *lost) {
    LINE(data, lost->begin, "lost", NUMBER("node", lost->node ? lost->node->number : DT_NO_VALUE),
         AT(lost, begin), AT(lost, end), NUMBER("count", lost->count), TEXT(lost, stream));
}

static const GError *failed(void *data) {
    return dt_file_failed(((struct dt_lines *)data)->file);
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct dt_lines *s = data;

    dt_file_printf(s->file, "- end events=%" PRIu64 " skipped=%" PRIu64 "\n",
                   dt_model_events(model), dt_model_skipped(model));
    return dt_file_close(g_steal_pointer(&s->file), error);
}

const struct dt_sink dt_sink_dump = {
    .description = "the events of the model, one per line, to test it",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .failed = failed,
#define MODEL_EVENT(name, declared, passed) .name = name,
#include "shared/model_events.def"
};
