#include "otlp/labeled_requests.h"

enum {
    /* Requests that have not ended, and calls that have not ended, at most. */
    REQUESTS_MAX = 10000,
    CALLS_MAX = 10000,
};

/* A request ends when this long passes without a message. */
#define PAUSE_NS (INT64_C(2) * 1000 * 1000 * 1000)

struct dt_labeled_request {
    unsigned references;
    uint64_t number;
    char *label;
    int64_t begin, end;
    unsigned node;
    char *attributes; /* of the process that sent the first message */
    GList *link;
};

/* The message of a call. */
struct call {
    struct dt_labeled_request *request;
    int64_t sent;
};

struct dt_labeled_requests {
    struct dt_otlp_writer *writer;
    uint64_t *numbers;
    GHashTable *by_label; /* those that have not ended */
    GQueue by_age;        /* the same, the oldest first */
    GHashTable *calls;    /* by caller and server */
};

uint64_t dt_labeled_request_number(const struct dt_labeled_request *request) {
    return request->number;
}

void dt_labeled_request_cover(struct dt_labeled_request *request, int64_t begin, int64_t end) {
    request->begin = MIN(request->begin, begin);
    request->end = MAX(request->end, end);
}

struct dt_labeled_request *dt_labeled_request_ref(struct dt_labeled_request *request) {
    request->references++;
    return request;
}

void dt_labeled_request_unref(struct dt_labeled_request *request) {
    if (!request || --request->references)
        return;
    g_free(request->label);
    g_free(request->attributes);
    g_free(request);
}

static void free_call(void *data) {
    struct call *call = data;

    dt_labeled_request_unref(call->request);
    g_free(call);
}

struct dt_labeled_requests *dt_labeled_requests_new(struct dt_otlp_writer *writer,
                                                    uint64_t *numbers) {
    struct dt_labeled_requests *requests = g_new0(struct dt_labeled_requests, 1);

    requests->writer = writer;
    requests->numbers = numbers;
    requests->by_label = g_hash_table_new(g_str_hash, g_str_equal);
    requests->calls = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_call);
    return requests;
}

/* -- Root spans ----------------------------------------------------------------------------- */

static void forget(struct dt_labeled_requests *requests, struct dt_labeled_request *request) {
    g_hash_table_remove(requests->by_label, request->label);
    g_queue_delete_link(&requests->by_age, request->link);
    dt_labeled_request_unref(request);
}

static void end_request(struct dt_labeled_requests *requests, struct dt_labeled_request *request) {
    g_autofree char *name = g_strdup_printf("request %s", request->label);
    g_autoptr(GString) body = g_string_new(NULL);

    dt_otlp_begin(body, name, DT_OTLP_INTERNAL, request->begin, request->end);
    dt_otlp_text(body, "erlang.seq_trace.label", request->label);
    dt_otlp_attributes(body, request->attributes);
    dt_otlp_end(body, NULL);
    dt_otlp_write(requests->writer, request->node,
                  (struct dt_otlp_place){request->number, 0, request->number}, body->str);
    forget(requests, request);
}

void dt_labeled_requests_end(struct dt_labeled_requests *requests) {
    struct dt_labeled_request *oldest;

    while ((oldest = g_queue_peek_head(&requests->by_age)))
        end_request(requests, oldest);
}

void dt_labeled_requests_free(struct dt_labeled_requests *requests) {
    struct dt_labeled_request *oldest;

    while ((oldest = g_queue_peek_head(&requests->by_age)))
        forget(requests, oldest);
    g_hash_table_destroy(requests->by_label);
    g_hash_table_destroy(requests->calls);
    g_free(requests);
}

/* -- Messages ------------------------------------------------------------------------------- */

static struct dt_labeled_request *begin_request(struct dt_labeled_requests *requests,
                                                const struct dt_message *m, int64_t begin) {
    struct dt_labeled_request *request = g_new0(struct dt_labeled_request, 1);

    request->references = 1;
    request->number = ++*requests->numbers;
    request->label = g_strdup(m->label);
    request->begin = request->end = begin;
    g_hash_table_insert(requests->by_label, request->label, request);
    g_queue_push_tail(&requests->by_age, request);
    request->link = requests->by_age.tail;
    if (requests->by_age.length > REQUESTS_MAX)
        end_request(requests, g_queue_peek_head(&requests->by_age));
    return request;
}

/* Messages are reported in no order, so a later one may have begun the request. */
static void begin_with(struct dt_labeled_request *request, const struct dt_process *from,
                       int64_t begin) {
    if (request->attributes && begin >= request->begin)
        return;
    g_autoptr(GString) attributes = g_string_new(NULL);

    dt_otlp_process(attributes, from);
    g_free(request->attributes);
    request->attributes = g_strdup(attributes->str);
    request->node = from->node->number;
    request->begin = begin;
}

static char *key_of(const struct dt_process *from, const struct dt_process *to) {
    return g_strdup_printf("%" PRIu64 " %" PRIu64, from->number, to->number);
}

static void note_call(struct dt_labeled_requests *requests, struct dt_labeled_request *request,
                      const struct dt_message *m) {
    struct call *call;

    if (g_hash_table_size(requests->calls) >= CALLS_MAX)
        g_hash_table_remove_all(requests->calls);
    call = g_new0(struct call, 1);
    call->request = dt_labeled_request_ref(request);
    call->sent = m->sent;
    g_hash_table_insert(requests->calls, key_of(m->from, m->to), call);
}

struct dt_labeled_request *dt_labeled_requests_message(struct dt_labeled_requests *requests,
                                                       const struct dt_message *m) {
    int64_t begin = m->sent != DT_NO_VALUE ? m->sent : m->delivered;
    int64_t end = MAX(m->sent, m->delivered);
    struct dt_labeled_request *request = g_hash_table_lookup(requests->by_label, m->label);

    if (request && begin - request->end > PAUSE_NS) {
        end_request(requests, request);
        request = NULL;
    }
    if (!request)
        request = begin_request(requests, m, begin);
    begin_with(request, m->from, begin);
    request->end = MAX(request->end, end);
    if (m->to && m->sent != DT_NO_VALUE)
        note_call(requests, request, m);
    return request;
}

struct dt_labeled_request *dt_labeled_requests_call(struct dt_labeled_requests *requests,
                                                    const struct dt_server_call *c) {
    g_autofree char *key = key_of(c->caller, c->server);
    const struct call *call = g_hash_table_lookup(requests->calls, key);
    struct dt_labeled_request *request = NULL;

    if (call && call->sent <= c->began && c->began - call->sent < PAUSE_NS)
        request = dt_labeled_request_ref(call->request);
    g_hash_table_remove(requests->calls, key);
    return request;
}
