/*
 * What the model tells, a line each:
 *
 *     TIME KIND KEY=VALUE...
 *
 * Times are ns since the first event, `-` if they are unknown. A process is its identifier and,
 * after a #, its number. Texts are quoted as strings of C; names of functions and counters are
 * escaped as these are, without quotes. So the model is tested.
 */
#include "viewer/sink.h"

#include <inttypes.h>

struct lines {
    struct dt_file *file;
    GString *line;
    int64_t base;
};

enum { PATH };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    {0},
};

static void *start(const union dt_value *values, GError **error) {
    struct dt_file *file = dt_file_open(values[PATH].string, error);
    struct lines *s;

    if (!file)
        return NULL;
    s = g_new0(struct lines, 1);
    s->file = file;
    s->line = g_string_new("");
    s->base = DT_NO_VALUE;
    return s;
}

static void free_lines(void *data) {
    struct lines *s = data;

    dt_file_discard(s->file);
    g_string_free(s->line, TRUE);
    g_free(s);
}

/* -- A line ------------------------------------------------------------------------- */

static void put_time(struct lines *s, int64_t time) {
    if (time == DT_NO_VALUE)
        g_string_append_c(s->line, '-');
    else
        g_string_append_printf(s->line, "%" PRId64, time - s->base);
}

static void begin(struct lines *s, int64_t time, const char *kind) {
    if (s->base == DT_NO_VALUE)
        s->base = time;
    g_string_truncate(s->line, 0);
    put_time(s, time);
    g_string_append_printf(s->line, " %s", kind);
}

static void key(struct lines *s, const char *key) {
    g_string_append_printf(s->line, " %s=", key);
}

static void at(struct lines *s, const char *name, int64_t time) {
    key(s, name);
    put_time(s, time);
}

static void number(struct lines *s, const char *name, int64_t n) {
    key(s, name);
    if (n == DT_NO_VALUE)
        g_string_append_c(s->line, '-');
    else
        g_string_append_printf(s->line, "%" PRId64, n);
}

static void word(struct lines *s, const char *name, const char *text) {
    char *escaped = g_strescape(text, NULL);

    key(s, name);
    g_string_append(s->line, escaped);
    g_free(escaped);
}

static void text(struct lines *s, const char *name, const char *text) {
    char *escaped;

    if (!*text)
        return;
    escaped = g_strescape(text, NULL);
    key(s, name);
    g_string_append_printf(s->line, "\"%s\"", escaped);
    g_free(escaped);
}

static void process(struct lines *s, const char *name, const struct dt_process *p) {
    key(s, name);
    if (p)
        g_string_append_printf(s->line, "%s#%" PRIu64, p->pid, p->number);
    else
        g_string_append_c(s->line, '-');
}

static void flag(struct lines *s, const char *name, bool is) {
    if (is)
        g_string_append_printf(s->line, " %s", name);
}

static void end(struct lines *s) {
    g_string_append_c(s->line, '\n');
    dt_file_write(s->file, s->line->str, s->line->len);
}

/* -- Nodes and processes --------------------------------------------------------------- */

static void node_line(struct lines *s, const char *kind, const struct dt_node *node, int64_t now) {
    begin(s, now, kind);
    number(s, "number", node->number);
    text(s, "name", node->name);
    text(s, "hostname", node->hostname);
    number(s, "os_pid", node->os_pid);
    text(s, "otp", node->otp);
    if (node->clock) {
        number(s, "clock", node->clock->number);
        text(s, "known", dt_clock_words[node->clock->known]);
        number(s, "offset", node->clock->offset);
        number(s, "uncertainty", node->clock->uncertainty);
    }
    end(s);
}

static void node(void *s, struct dt_node *node) {
    node_line(s, "node", node, node->last);
}

static void node_gone(void *s, struct dt_node *node) {
    node_line(s, "node_gone", node, node->last);
}

static void scheduler(void *data, struct dt_scheduler *scheduler) {
    struct lines *s = data;

    begin(s, scheduler->node->last, "scheduler");
    number(s, "number", scheduler->number);
    number(s, "node", scheduler->node->number);
    number(s, "id", scheduler->id);
    text(s, "name", scheduler->name);
    flag(s, "is_cpu", scheduler->is_cpu);
    end(s);
}

static void process_line(struct lines *s, const char *kind, const struct dt_process *p,
                         int64_t now) {
    begin(s, now, kind);
    process(s, "process", p);
    number(s, "node", p->node->number);
    word(s, "kind", dt_kind_names[p->kind]);
    process(s, "parent", p->parent);
    at(s, "began", p->began);
    at(s, "first", p->first);
    at(s, "ended", p->ended);
    text(s, "name", p->name);
    text(s, "initial", p->initial);
    text(s, "label", p->label);
    text(s, "group", p->group);
    text(s, "show", p->show);
    end(s);
}

static void process_known(void *s, struct dt_process *p, int64_t now) {
    process_line(s, "process", p, now);
}

static void process_named(void *s, struct dt_process *p, int64_t now) {
    process_line(s, "process_named", p, now);
}

static void process_gone(void *s, struct dt_process *p) {
    process_line(s, "process_gone", p, p->node->last);
}

static void process_exited(void *data, const struct dt_exit *exit) {
    struct lines *s = data;

    begin(s, exit->time, "process_exited");
    process(s, "process", exit->process);
    flag(s, "is_crash", exit->is_crash);
    for (unsigned i = 0; i < exit->links; i++)
        process(s, "linked", exit->linked[i]);
    text(s, "reason", exit->reason);
    end(s);
}

static void interval(void *data, const struct dt_interval *i) {
    struct lines *s = data;

    begin(s, i->end, "interval");
    process(s, "process", i->process);
    word(s, "state", dt_state_names[i->state]);
    at(s, "begin", i->begin);
    at(s, "end", i->end);
    flag(s, "inferred", i->inferred);
    flag(s, "is_open", i->is_open);
    if (i->scheduler)
        number(s, "scheduler", i->scheduler->number);
    text(s, "in", i->in);
    text(s, "out", i->out);
    if (i->state == DT_STATE_COLLECTING) {
        flag(s, "is_major", i->is_major);
        number(s, "reclaimed", (int64_t)i->reclaimed);
        number(s, "heap", (int64_t)i->heap);
        number(s, "old_heap", (int64_t)i->old_heap);
    }
    end(s);
}

static void mailbox(void *data, struct dt_process *p, int64_t now) {
    struct lines *s = data;

    begin(s, now, "mailbox");
    process(s, "process", p);
    number(s, "messages", (int64_t)p->mailbox);
    end(s);
}

/* -- Calls ----------------------------------------------------------------------------- */

static void frame_line(struct lines *s, const char *kind, const struct dt_frame *f, int64_t now) {
    begin(s, now, kind);
    number(s, "number", (int64_t)f->number);
    process(s, "process", f->process);
    word(s, "entry", f->entry);
    number(s, "depth", f->depth);
}

static void call_begin(void *data, struct dt_frame *f) {
    struct lines *s = data;

    frame_line(s, "call_begin", f, f->begin);
    flag(s, "inferred", f->inferred);
    end(s);
}

static void call_end(void *data, struct dt_frame *f) {
    struct lines *s = data;

    frame_line(s, "call_end", f, f->end);
    at(s, "begin", f->begin);
    at(s, "end", f->end);
    word(s, "left", dt_left_names[f->left]);
    number(s, "own", f->own);
    number(s, "waited", f->waited);
    flag(s, "inferred", f->inferred);
    flag(s, "has_return", f->has_return);
    text(s, "class", f->class);
    text(s, "value", f->value);
    end(s);
}

static void arguments(void *data, struct dt_frame *f, const char *arguments) {
    struct lines *s = data;

    frame_line(s, "arguments", f, f->begin);
    text(s, "arguments", arguments);
    end(s);
}

/* -- Messages -------------------------------------------------------------------------- */

static void message_line(struct lines *s, const char *kind, const struct dt_message *m,
                         int64_t now) {
    begin(s, now, kind);
    number(s, "number", (int64_t)m->number);
    process(s, "from", m->from);
    process(s, "to", m->to);
    at(s, "sent", m->sent);
    at(s, "delivered", m->delivered);
    word(s, "matched", dt_matched_names[m->matched]);
    flag(s, "is_dead", m->is_dead);
    if (m->early)
        number(s, "early", m->early);
    text(s, "to_text", m->to_text);
    text(s, "label", m->label);
    text(s, "timer", m->timer);
    text(s, "text", m->text);
    end(s);
}

static void sent(void *s, struct dt_message *m) {
    message_line(s, "sent", m, m->sent);
}

static void delivered(void *s, struct dt_message *m) {
    message_line(s, "delivered", m, m->delivered);
}

static void message_gone(void *s, struct dt_message *m) {
    message_line(s, "message_gone", m, m->delivered == DT_NO_VALUE ? m->sent : m->delivered);
}

static void server_call(void *data, const struct dt_server_call *c) {
    struct lines *s = data;

    begin(s, c->ended, "server_call");
    process(s, "caller", c->caller);
    process(s, "server", c->server);
    word(s, "outcome", dt_outcome_names[c->outcome]);
    at(s, "began", c->began);
    at(s, "delivered", c->delivered);
    at(s, "taken", c->taken);
    at(s, "ended", c->ended);
    text(s, "request", c->request);
    text(s, "reply", c->reply);
    end(s);
}

/* -- The rest -------------------------------------------------------------------------- */

static void span(void *data, const struct dt_span *span) {
    struct lines *s = data;

    begin(s, span->end, "span");
    process(s, "process", span->process);
    number(s, "id", (int64_t)span->id);
    at(s, "begin", span->begin);
    at(s, "end", span->end);
    flag(s, "is_open", span->is_open);
    text(s, "outcome", span->outcome);
    text(s, "name", span->name);
    end(s);
}

static void instant(void *data, const struct dt_instant *i) {
    struct lines *s = data;

    begin(s, i->event->time, "instant");
    word(s, "probe", dt_probe_names[i->event->probe]);
    number(s, "node", i->node->number);
    process(s, "process", i->process);
    process(s, "other", i->other);
    end(s);
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t now) {
    struct lines *s = data;

    begin(s, now, "counter");
    number(s, "node", node->number);
    word(s, "name", name);
    number(s, "value", value);
    text(s, "unit", unit);
    end(s);
}

static void lost(void *data, const struct dt_lost *lost) {
    struct lines *s = data;

    begin(s, lost->begin, "lost");
    number(s, "node", lost->node ? lost->node->number : DT_NO_VALUE);
    at(s, "begin", lost->begin);
    at(s, "end", lost->end);
    number(s, "count", (int64_t)lost->count);
    text(s, "stream", lost->stream);
    end(s);
}

static const GError *failed(void *data) {
    return dt_file_failed(((struct lines *)data)->file);
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct lines *s = data;

    dt_file_printf(s->file, "- end events=%" PRIu64 " skipped=%" PRIu64 "\n",
                   dt_model_events(model), dt_model_skipped(model));
    return dt_file_close(g_steal_pointer(&s->file), error);
}

const struct dt_sink dt_sink_model = {
    .name = "model",
    .description = "what the model tells, a line for each: to test it",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_lines,
    .failed = failed,
    .node = node,
    .node_gone = node_gone,
    .scheduler = scheduler,
    .process = process_known,
    .process_named = process_named,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .interval = interval,
    .mailbox = mailbox,
    .call_begin = call_begin,
    .call_end = call_end,
    .arguments = arguments,
    .sent = sent,
    .delivered = delivered,
    .message_gone = message_gone,
    .server_call = server_call,
    .span = span,
    .instant = instant,
    .counter = counter,
    .lost = lost,
};
