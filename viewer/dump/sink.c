/*
 * Dumps the events of the model, one per line, to test the model:
 *
 *     TIME KIND KEY=VALUE...
 *
 * Times are ns after the first event, or `-` if unknown. A process is its identifier, a `#` and its
 * number. Texts are quoted like C strings; names of functions and counters are escaped in the same
 * way, but not quoted.
 */
#include <inttypes.h>

#include "dump/lines.h"
#include "model/model.h"
#include "shared/probe_fields.h"

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

static void free_lines(void *data) {
    struct dt_lines *s = data;

    dt_file_discard(s->file);
    g_string_free(s->line, TRUE);
    g_free(s);
}

/* -- Nodes and processes --------------------------------------------------------------- */

static void node_line(struct dt_lines *s, const char *kind, const struct dt_node *node,
                      int64_t now) {
    dt_line_begin(s, now, kind);
    dt_line_number(s, "number", node->number);
    dt_line_text(s, "name", node->name);
    dt_line_text(s, "hostname", node->hostname);
    dt_line_number(s, "os_pid", node->os_pid);
    dt_line_text(s, "otp", node->otp);
    if (node->clock) {
        dt_line_number(s, "clock", node->clock->number);
        dt_line_text(s, "known", dt_clock_words[node->clock->known]);
        dt_line_number(s, "offset", node->clock->offset);
        dt_line_number(s, "uncertainty", node->clock->uncertainty);
    }
    dt_line_end(s);
}

static void node(void *s, struct dt_node *node) {
    node_line(s, "node", node, node->last);
}

static void node_gone(void *s, struct dt_node *node) {
    node_line(s, "node_gone", node, node->last);
}

static void scheduler(void *data, struct dt_scheduler *scheduler) {
    struct dt_lines *s = data;

    dt_line_begin(s, scheduler->node->last, "scheduler");
    dt_line_number(s, "number", scheduler->number);
    dt_line_number(s, "node", scheduler->node->number);
    dt_line_number(s, "id", scheduler->id);
    dt_line_text(s, "name", scheduler->name);
    dt_line_flag(s, "is_cpu", scheduler->is_cpu);
    if (scheduler->kind)
        dt_line_word(s, "kind", dt_scheduler_kind_names[scheduler->kind]);
    dt_line_end(s);
}

static void process_line(struct dt_lines *s, const char *kind, const struct dt_process *p,
                         int64_t now) {
    dt_line_begin(s, now, kind);
    dt_line_process(s, "process", p);
    dt_line_number(s, "node", p->node->number);
    dt_line_word(s, "kind", dt_kind_names[p->kind]);
    dt_line_process(s, "parent", p->parent);
    dt_line_at(s, "began", p->began);
    dt_line_at(s, "first", p->first);
    dt_line_at(s, "ended", p->ended);
    dt_line_text(s, "name", p->name);
    dt_line_text(s, "initial", p->initial);
    dt_line_text(s, "label", p->label);
    dt_line_text(s, "group", p->group);
    dt_line_text(s, "show", p->show);
    dt_line_end(s);
}

static void process(void *s, struct dt_process *p, int64_t now) {
    process_line(s, "process", p, now);
}

static void process_named(void *s, struct dt_process *p, int64_t now) {
    process_line(s, "process_named", p, now);
}

static void process_gone(void *s, struct dt_process *p) {
    process_line(s, "process_gone", p, p->node->last);
}

static void process_exited(void *data, const struct dt_exit *exit) {
    struct dt_lines *s = data;

    dt_line_begin(s, exit->time, "process_exited");
    dt_line_process(s, "process", exit->process);
    dt_line_flag(s, "is_crash", exit->is_crash);
    for (unsigned i = 0; i < exit->links; i++)
        dt_line_process(s, "linked", exit->linked[i]);
    dt_line_text(s, "reason", exit->reason);
    dt_line_end(s);
}

static void interval(void *data, const struct dt_interval *i) {
    struct dt_lines *s = data;

    dt_line_begin(s, i->end, "interval");
    dt_line_process(s, "process", i->process);
    dt_line_word(s, "state", dt_state_names[i->state]);
    dt_line_at(s, "begin", i->begin);
    dt_line_at(s, "end", i->end);
    dt_line_flag(s, "inferred", i->inferred);
    dt_line_flag(s, "is_open", i->is_open);
    if (i->scheduler)
        dt_line_number(s, "scheduler", i->scheduler->number);
    dt_line_text(s, "in", i->in);
    dt_line_text(s, "out", i->out);
    if (i->state == DT_STATE_COLLECTING) {
        dt_line_flag(s, "is_major", i->is_major);
        dt_line_flag(s, "is_stretched", dt_is_stretched(i));
        dt_line_number(s, "reclaimed", (int64_t)i->reclaimed);
        dt_line_number(s, "heap", (int64_t)i->heap);
        dt_line_number(s, "old_heap", (int64_t)i->old_heap);
    }
    dt_line_end(s);
}

static void mailbox(void *data, struct dt_process *p, int64_t now) {
    struct dt_lines *s = data;

    dt_line_begin(s, now, "mailbox");
    dt_line_process(s, "process", p);
    dt_line_number(s, "messages", (int64_t)p->mailbox);
    dt_line_end(s);
}

/* -- Calls ----------------------------------------------------------------------------- */

static void frame_line(struct dt_lines *s, const char *kind, const struct dt_frame *f,
                       int64_t now) {
    dt_line_begin(s, now, kind);
    dt_line_number(s, "number", (int64_t)f->number);
    dt_line_process(s, "process", f->process);
    dt_line_word(s, "entry", f->entry);
    dt_line_number(s, "depth", f->depth);
}

static void call_begin(void *data, struct dt_frame *f) {
    struct dt_lines *s = data;

    frame_line(s, "call_begin", f, f->begin);
    dt_line_flag(s, "inferred", f->inferred);
    dt_line_end(s);
}

static void call_end(void *data, struct dt_frame *f) {
    struct dt_lines *s = data;

    frame_line(s, "call_end", f, f->end);
    dt_line_at(s, "begin", f->begin);
    dt_line_at(s, "end", f->end);
    dt_line_word(s, "left", dt_left_names[f->left]);
    dt_line_number(s, "own", f->own);
    dt_line_number(s, "waited", f->waited);
    dt_line_flag(s, "inferred", f->inferred);
    dt_line_flag(s, "has_return", f->has_return);
    dt_line_text(s, "class", f->class);
    dt_line_text(s, "value", f->value);
    dt_line_end(s);
}

static void arguments(void *data, struct dt_frame *f, const char *arguments) {
    struct dt_lines *s = data;

    frame_line(s, "arguments", f, f->begin);
    dt_line_text(s, "arguments", arguments);
    dt_line_end(s);
}

/* -- Messages -------------------------------------------------------------------------- */

static void message_line(struct dt_lines *s, const char *kind, const struct dt_message *m,
                         int64_t now) {
    dt_line_begin(s, now, kind);
    dt_line_number(s, "number", (int64_t)m->number);
    dt_line_process(s, "from", m->from);
    dt_line_process(s, "to", m->to);
    dt_line_at(s, "sent", m->sent);
    dt_line_at(s, "delivered", m->delivered);
    dt_line_word(s, "matched", dt_matched_names[m->matched]);
    dt_line_flag(s, "is_dead", m->is_dead);
    if (m->early)
        dt_line_number(s, "early", m->early);
    dt_line_text(s, "to_text", m->to_text);
    dt_line_text(s, "label", m->label);
    dt_line_text(s, "timer", m->timer);
    dt_line_text(s, "text", m->text);
    dt_line_end(s);
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
    struct dt_lines *s = data;

    dt_line_begin(s, c->ended, "server_call");
    dt_line_process(s, "caller", c->caller);
    dt_line_process(s, "server", c->server);
    dt_line_word(s, "outcome", dt_outcome_names[c->outcome]);
    dt_line_at(s, "began", c->began);
    dt_line_at(s, "delivered", c->delivered);
    dt_line_at(s, "taken", c->taken);
    dt_line_at(s, "ended", c->ended);
    dt_line_text(s, "request", c->request);
    dt_line_text(s, "reply", c->reply);
    dt_line_end(s);
}

/* -- Other events ---------------------------------------------------------------------- */

static void span(void *data, const struct dt_span *span) {
    struct dt_lines *s = data;

    dt_line_begin(s, span->end, "span");
    dt_line_process(s, "process", span->process);
    dt_line_number(s, "id", (int64_t)span->id);
    dt_line_at(s, "begin", span->begin);
    dt_line_at(s, "end", span->end);
    dt_line_flag(s, "is_open", span->is_open);
    dt_line_text(s, "outcome", span->outcome);
    dt_line_text(s, "name", span->name);
    dt_line_end(s);
}

static void instant(void *data, const struct dt_instant *i) {
    struct dt_lines *s = data;

    dt_line_begin(s, i->event->time, "instant");
    dt_line_word(s, "probe", dt_probe_names[i->event->probe]);
    dt_line_number(s, "node", i->node->number);
    dt_line_process(s, "process", i->process);
    dt_line_process(s, "other", i->other);
    if (i->is_general) {
        g_autoptr(GString) fields = g_string_new(NULL);

        dt_fields_text(fields, i->event);
        dt_line_text(s, "fields", fields->str);
    }
    dt_line_end(s);
}

static void sample(void *data, struct dt_process *process, const struct dt_process_sample *e,
                   int64_t now) {
    struct dt_lines *s = data;

    dt_line_begin(s, now, "sample");
    dt_line_process(s, "process", process);
    dt_line_number(s, "queue", (int64_t)e->queue);
    dt_line_number(s, "memory", (int64_t)e->memory);
    dt_line_number(s, "reductions", (int64_t)e->reductions);
    dt_line_text(s, "entry", e->entry);
    dt_line_text(s, "state", e->state);
    dt_line_end(s);
}

static void counter(void *data, struct dt_node *node, const char *name, const char *unit,
                    int64_t value, int64_t now) {
    struct dt_lines *s = data;

    dt_line_begin(s, now, "counter");
    dt_line_number(s, "node", node->number);
    dt_line_word(s, "name", name);
    dt_line_number(s, "value", value);
    dt_line_text(s, "unit", unit);
    dt_line_end(s);
}

static void lost(void *data, const struct dt_lost *lost) {
    struct dt_lines *s = data;

    dt_line_begin(s, lost->begin, "lost");
    dt_line_number(s, "node", lost->node ? lost->node->number : DT_NO_VALUE);
    dt_line_at(s, "begin", lost->begin);
    dt_line_at(s, "end", lost->end);
    dt_line_number(s, "count", (int64_t)lost->count);
    dt_line_text(s, "stream", lost->stream);
    dt_line_end(s);
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
    .free = free_lines,
    .failed = failed,
#define MODEL_EVENT(name, declared, passed) .name = name,
#include "shared/model_events.def"
};
