/*
 * The sink `otlp`: spans for OpenTelemetry.
 *
 *     server call                  a client span of the caller, with a server span of the server
 *     annotation, telemetry        a span of the process
 *     messages with a label        a span for the request, and one for each message that belongs to
 *                                  no call
 */
#include "otlp/labeled_requests.h"
#include "otlp/otlp_writer.h"
#include "otlp/span_trees.h"
#include "shared/sink.h"
#include "shared/texts.h"

#include <string.h>

/* The begin of a telemetry span is computed from the duration that the program measured. The event
   follows that measurement later, on a busy machine by some ms, so children may seem to begin
   before the span. Earlier spans do not: they had ended before it began. */
enum { SLACK_NS = 10 * 1000 * 1000 };

enum { PATH };

static const struct dt_param params[] = {
    [PATH] = DT_PARAM_PATH("-"),
    {0},
};

struct otlp {
    struct dt_otlp_writer *writer;
    struct dt_span_trees *trees;
    struct dt_labeled_requests *requests;
    uint64_t numbers; /* of spans so far */
    bool has_node;
};

/* -- Begin and end ------------------------------------------------------------------------- */

static void *start(const union dt_value *values, GError **error) {
    struct dt_otlp_writer *writer = dt_otlp_open(values[PATH].string, error);
    struct otlp *s;

    if (!writer)
        return NULL;
    s = g_new0(struct otlp, 1);
    s->writer = writer;
    s->trees = dt_span_trees_new(writer);
    s->requests = dt_labeled_requests_new(writer, &s->numbers);
    return s;
}

static void free_sink(void *data) {
    struct otlp *s = data;

    dt_span_trees_free(s->trees);
    dt_labeled_requests_free(s->requests);
    dt_otlp_free(s->writer);
    g_free(s);
}

static bool finish(void *data, const struct dt_model *model, GError **error) {
    struct otlp *s = data;

    (void)model;
    dt_labeled_requests_end(s->requests);
    if (!s->has_node)
        dt_nothing(DT_NOTHING_RECORDED);
    else if (!dt_otlp_written(s->writer))
        dt_nothing("the recording has no calls of servers, annotations, telemetry or requests: "
                   "record the groups messages, scheduling, annotations and telemetry");
    return dt_otlp_close(s->writer, error);
}

static const GError *failed(void *data) {
    const struct otlp *s = data;

    return dt_otlp_failed(s->writer);
}

static void node(void *data, struct dt_node *node) {
    struct otlp *s = data;

    s->has_node = true;
    dt_otlp_node(s->writer, node);
}

static void process_gone(void *data, struct dt_process *process) {
    const struct otlp *s = data;

    dt_span_trees_process_gone(s->trees, process);
}

/* -- Names ---------------------------------------------------------------------------------- */

/* A name that few processes have. */
static const char *service_of(const struct dt_process *process) {
    if (*process->name)
        return process->name;
    return *process->initial ? process->initial : "process";
}

/* The atom that a term is or begins with: get of {get,17}; to be freed by g_free. "" for other
   terms. */
static char *atom_of(const char *term) {
    size_t size;

    (void)dt_skip(&term, "{");
    if (*term == '\'')
        size = dt_quoted(term);
    else
        size =
            g_ascii_islower(*term) ? strspn(term, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "_@") : 0;
    return g_strndup(term, size);
}

/* "shop_db/get" */
static char *name_of(const char *service, const char *method) {
    return *method ? g_strdup_printf("%s/%s", service, method) : g_strdup(service);
}

/* -- Calls ---------------------------------------------------------------------------------- */

static const char *error_of(enum dt_outcome outcome) {
    return outcome == DT_OUTCOME_TIMEOUT || outcome == DT_OUTCOME_DOWN ? dt_outcome_names[outcome]
                                                                       : NULL;
}

static void put_call(GString *to, const struct dt_server_call *c, enum dt_otlp_kind kind,
                     int64_t begin, int64_t end) {
    bool is_client = kind == DT_OTLP_CLIENT;
    const struct dt_process *peer = is_client ? c->server : c->caller;
    g_autofree char *method = atom_of(c->request);
    g_autofree char *name = name_of(service_of(c->server), method);

    dt_otlp_begin(to, name, kind, begin, end);
    dt_otlp_text(to, "rpc.system.name", "erlang");
    dt_otlp_text(to, "rpc.method", name);
    dt_otlp_process(to, is_client ? c->caller : c->server);
    dt_otlp_text(to, "erlang.peer.pid", peer->pid);
    dt_otlp_text(to, "erlang.peer.registered_name", peer->name);
    if (c->caller->node != c->server->node)
        dt_otlp_node_name(to, "erlang.peer.node", peer->node);
}

/* When the server began to work on the call; DT_NO_VALUE if it did not, as far as known. */
static int64_t served_since(const struct dt_server_call *c) {
    int64_t since = c->taken != DT_NO_VALUE ? c->taken : c->delivered;

    if (c->server->kind != DT_PROCESS)
        return DT_NO_VALUE;
    if (since == DT_NO_VALUE && c->outcome == DT_OUTCOME_REPLY)
        since = c->began;
    return since == DT_NO_VALUE ? since : CLAMP(since, c->began, MAX(c->began, c->ended));
}

static struct dt_held_span *client_span(struct otlp *s, const struct dt_server_call *c) {
    g_autoptr(GString) body = g_string_new(NULL);
    int64_t end = MAX(c->began, c->ended);

    put_call(body, c, DT_OTLP_CLIENT, c->began, end);
    dt_otlp_text(body, "erlang.request", c->request);
    dt_otlp_text(body, "erlang.reply", c->reply);
    if (c->outcome == DT_OUTCOME_UNKNOWN)
        dt_otlp_true(body, "dyntrace.open");
    dt_otlp_end(body, error_of(c->outcome));
    return dt_held_span(s->trees, ++s->numbers, c->caller, c->began, end, body);
}

/* After a timeout of its caller, the server continues. */
static struct dt_held_span *server_span(struct otlp *s, const struct dt_server_call *c,
                                        int64_t begin) {
    g_autoptr(GString) body = g_string_new(NULL);
    int64_t end = MAX(begin, c->ended), works_until = c->deferred;
    struct dt_held_span *span;

    if (works_until == DT_NO_VALUE)
        works_until = end;
    put_call(body, c, DT_OTLP_SERVER, begin, end);
    if (c->delivered != DT_NO_VALUE)
        dt_otlp_number(body, "dyntrace.queued_ns", MAX(begin - c->delivered, 0));
    if (c->outcome == DT_OUTCOME_UNKNOWN || c->outcome == DT_OUTCOME_TIMEOUT)
        dt_otlp_true(body, "dyntrace.open");
    dt_otlp_end(body, c->outcome == DT_OUTCOME_DOWN ? error_of(c->outcome) : NULL);
    span = dt_held_span(s->trees, ++s->numbers, c->server, begin, end, body);
    dt_held_span_adopt(s->trees, span, c->server, begin, works_until, 0);
    return span;
}

static void server_call(void *data, const struct dt_server_call *c) {
    struct otlp *s = data;
    struct dt_held_span *client = client_span(s, c);
    struct dt_labeled_request *request = dt_labeled_requests_call(s->requests, c);
    int64_t since = served_since(c);

    dt_held_span_label(client, request);
    dt_labeled_request_unref(request);
    if (since != DT_NO_VALUE)
        dt_held_span_add_child(client, server_span(s, c, since));
    dt_held_span_add(s->trees, c->caller, client);
}

/* -- Annotations and telemetry ------------------------------------------------------------------
 */

static void span(void *data, const struct dt_span *span) {
    struct otlp *s = data;
    g_autoptr(GString) body = g_string_new(NULL);
    bool has_failed = *span->outcome && strcmp(span->outcome, "ok") != 0;
    int64_t end = MAX(span->begin, span->end);
    struct dt_held_span *held;

    dt_otlp_begin(body, span->name, DT_OTLP_INTERNAL, span->begin, end);
    dt_otlp_process(body, span->process);
    if (span->telemetry) {
        dt_otlp_text(body, "erlang.telemetry.measurements", span->telemetry->measurements);
        dt_otlp_text(body, "erlang.telemetry.metadata", span->telemetry->metadata);
    }
    if (span->is_open)
        dt_otlp_true(body, "dyntrace.open");
    dt_otlp_end(body, has_failed ? span->outcome : NULL);
    held = dt_held_span(s->trees, ++s->numbers, span->process, span->begin, end, body);
    dt_held_span_adopt(s->trees, held, span->process, span->begin, end,
                       span->telemetry ? SLACK_NS : 0);
    dt_held_span_add(s->trees, span->process, held);
}

/* -- Messages of labeled requests ---------------------------------------------------------------
 */

/* Whether it looks like the request or the reply of a call. */
static bool is_of_call(const char *text) {
    if (!dt_skip(&text, "{"))
        return false;
    return g_str_has_prefix(text, "'$gen_call',") || g_str_has_prefix(text, "[alias|#Ref<") ||
           g_str_has_prefix(text, "#Ref<");
}

/* {'$gen_cast',{order,17}} is of order. */
static const char *content_of(const char *text) {
    (void)dt_skip(&text, "{'$gen_cast',");
    return text;
}

/* A delivery that was not recorded came before the receiver's end, or may still follow. */
static int64_t delivered_by(const struct dt_message *m) {
    if (m->delivered != DT_NO_VALUE)
        return m->delivered;
    return m->to->ended != DT_NO_VALUE ? m->to->ended : m->to->node->last;
}

static void message_gone(void *data, struct dt_message *m) {
    struct otlp *s = data;
    struct dt_labeled_request *request;
    struct dt_held_span *held;

    if (!*m->label || !m->from)
        return;
    request = dt_labeled_requests_message(s->requests, m);
    if (!m->to || m->sent == DT_NO_VALUE || is_of_call(m->text))
        return;
    g_autoptr(GString) body = g_string_new(NULL);
    g_autofree char *method = atom_of(content_of(m->text));
    g_autofree char *name = name_of(service_of(m->to), method);

    dt_otlp_begin(body, name, DT_OTLP_CONSUMER, m->sent, MAX(m->sent, delivered_by(m)));
    dt_otlp_process(body, m->to);
    dt_otlp_text(body, "erlang.peer.pid", m->from->pid);
    dt_otlp_text(body, "erlang.peer.registered_name", m->from->name);
    if (m->from->node != m->to->node)
        dt_otlp_node_name(body, "erlang.peer.node", m->from->node);
    dt_otlp_text(body, "erlang.message", m->text);
    if (m->delivered == DT_NO_VALUE)
        dt_otlp_true(body, "dyntrace.open");
    dt_otlp_end(body, NULL);
    held = dt_held_span(s->trees, ++s->numbers, m->to, m->sent, m->sent, body);
    dt_held_span_label(held, request);
    /* Its parent is a span of the sender. */
    dt_held_span_add(s->trees, m->from, held);
}

const struct dt_sink dt_sink_otlp = {
    .description = "spans for OpenTelemetry",
    .params = params,
    .start = start,
    .finish = finish,
    .free = free_sink,
    .failed = failed,
    .node = node,
    .node_gone = node,
    .process_gone = process_gone,
    .server_call = server_call,
    .span = span,
    .message_gone = message_gone,
};
