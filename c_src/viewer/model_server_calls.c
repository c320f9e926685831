/*
 * Calls of gen_server and its kin:
 *
 *     {'$gen_call',{<0.90.0>,[alias|#Ref<0.1.2.3>]},Request}   or {<0.90.0>,#Ref<0.1.2.3>}
 *     {[alias|#Ref<0.1.2.3>],Reply}                            or {#Ref<0.1.2.3>,Reply}
 *     {'DOWN',#Ref<0.1.2.3>,process,<0.91.0>,noproc}
 *
 * The reference, which is also the caller's alias, is that of one call. A call is pending from its
 * request to its end, in a table by that reference: that of the caller's node, if it is recorded,
 * in which the reference begins with 0.
 */
#include <string.h>

#include "viewer/far.h"
#include "viewer/model_parts.h"
#include "viewer/texts.h"

const char *const dt_outcome_names[] = {
    [DT_OUTCOME_REPLY] = "reply",
    [DT_OUTCOME_TIMEOUT] = "timeout",
    [DT_OUTCOME_DOWN] = "down",
    [DT_OUTCOME_UNKNOWN] = "unknown",
};

enum {
    /* Requests without a reply may stay pending for ever: the oldest leave. */
    PENDING_MAX = 100000,
    REFERENCE_MAX = 100,
};

struct server_call {
    struct dt_server_call seen;
    struct node *node; /* in whose table it is */
    uint64_t number;
    char *reference, *request;
    GList *link, *of_caller, *of_server;
};

struct server_calls {
    GHashTable *pending; /* reference -> call */
    GQueue by_age;       /* oldest first */
};

/* -- Texts -------------------------------------------------------------------------- */

/* Moves past "#Ref<0.1.2.3>". */
static bool reference(const char **text, char to[REFERENCE_MAX]) {
    return dt_take(text, "#Ref<", to, REFERENCE_MAX);
}

/* Moves past a tag: [alias|#Ref<0.1.2.3>], or the reference alone. */
static bool tag(const char **text, char to[REFERENCE_MAX]) {
    bool is_alias = dt_skip(text, "[alias|");

    return reference(text, to) && (!is_alias || dt_skip(text, "]"));
}

struct request {
    char caller[REFERENCE_MAX], reference[REFERENCE_MAX];
    const char *term; /* with the bracket that ends the message */
};

static bool parse_request(const char *text, struct request *request) {
    if (!dt_skip(&text, "{'$gen_call',{") ||
        !dt_take(&text, "<", request->caller, sizeof request->caller) || !dt_skip(&text, ",") ||
        !tag(&text, request->reference) || !dt_skip(&text, "},"))
        return false;
    request->term = text;
    return true;
}

/* A term without the bracket that ends the message around it. A cut text has none. */
static char *inner(const char *text) {
    size_t size = strlen(text);

    return g_strndup(text, size && text[size - 1] == '}' ? size - 1 : size);
}

/* -- Pending calls ------------------------------------------------------------------ */

static struct process *live(struct dt_process *seen) {
    return (struct process *)seen;
}

static void end_call(struct server_call *call, enum dt_outcome outcome, const char *reply) {
    struct node *node = call->node;
    struct process *caller = live(call->seen.caller), *server = live(call->seen.server);

    call->seen.outcome = outcome;
    call->seen.reply = reply;
    call->seen.ended = node->model->now;
    DT_TELL(node->model, server_call, &call->seen);
    g_hash_table_remove(node->server_calls->pending, call->reference);
    g_queue_delete_link(&node->server_calls->by_age, call->link);
    g_queue_delete_link(&caller->calls_by_itself, call->of_caller);
    g_queue_delete_link(&server->calls_of_others, call->of_server);
    g_free(call->reference);
    g_free(call->request);
    g_free(call);
    dt_process_unref(caller);
    dt_process_unref(server);
}

static GList *append(GQueue *queue, struct server_call *call) {
    g_queue_push_tail(queue, call);
    return queue->tail;
}

/* The node in whose table a reference is, and its text there, to be freed by g_free. */
static struct node *table_of(struct node *node, const char *reference, char **there) {
    struct node *home = dt_home(node, reference);

    if (!home)
        home = node;
    *there = home == node ? g_strdup(reference) : dt_far_at_home(reference);
    return home;
}

static struct server_call *pending(struct node *node, const char *reference) {
    char *there;
    const struct node *home = table_of(node, reference, &there);
    struct server_call *call = g_hash_table_lookup(home->server_calls->pending, there);

    g_free(there);
    return call;
}

static void begin_call(struct node *node, const struct request *request, struct process *server,
                       bool is_delivered) {
    struct process *caller = dt_process_anywhere(node, request->caller);
    struct server_calls *all;
    struct server_call *call;

    if (!caller || !server || pending(node, request->reference))
        return;
    call = g_new0(struct server_call, 1);
    call->node = table_of(node, request->reference, &call->reference);
    all = call->node->server_calls;
    call->number = ++node->model->server_calls;
    call->request = inner(request->term);
    call->seen = (struct dt_server_call){.caller = &caller->seen,
                                         .server = &server->seen,
                                         .request = call->request,
                                         .reply = "",
                                         .began = node->model->now,
                                         .delivered = is_delivered ? node->model->now : DT_NO_VALUE,
                                         .taken = DT_NO_VALUE};
    dt_process_ref(caller);
    dt_process_ref(server);
    if (!server->calls_of_others.length)
        server->serves_since = dt_runs(server->seen.state) ? node->model->now : DT_NO_VALUE;
    call->link = append(&all->by_age, call);
    call->of_caller = append(&caller->calls_by_itself, call);
    call->of_server = append(&server->calls_of_others, call);
    g_hash_table_insert(all->pending, call->reference, call);
    if (all->by_age.length > PENDING_MAX)
        end_call(g_queue_peek_head(&all->by_age), DT_OUTCOME_UNKNOWN, "");
}

struct process *dt_alias(struct node *node, const char *text) {
    char alias[REFERENCE_MAX];
    struct server_call *call = reference(&text, alias) ? pending(node, alias) : NULL;

    return call ? live(call->seen.caller) : NULL;
}

/* -- Messages ----------------------------------------------------------------------- */

/* A server takes requests one by one: this one after its last reply or, if it was idle, when it ran
 * next. */
static int64_t taken(const struct server_call *call) {
    const struct process *server = live(call->seen.server);
    int64_t received =
        call->seen.delivered == DT_NO_VALUE ? call->seen.began : call->seen.delivered;

    if (!dt_runs(server->seen.state) || server->serves_since == DT_NO_VALUE)
        return DT_NO_VALUE;
    return MAX(server->serves_since, received);
}

static bool reply(struct node *node, struct process *from, struct process *to, const char *text) {
    char key[REFERENCE_MAX];
    struct server_call *call;
    char *term;

    if (!dt_skip(&text, "{") || !tag(&text, key) || !dt_skip(&text, ",") ||
        !(call = pending(node, key)) || call->seen.caller != &to->seen)
        return false;
    if (from && call->seen.server == &from->seen)
        call->seen.taken = taken(call);
    live(call->seen.server)->serves_since = node->model->now;
    term = inner(text);
    end_call(call, DT_OUTCOME_REPLY, term);
    g_free(term);
    return true;
}

void dt_server_calls_sent(struct node *node, struct process *from, struct process *to,
                          const char *text) {
    struct request request;

    if (!to || *text != '{')
        return;
    if (parse_request(text, &request))
        begin_call(node, &request, to, false);
    else
        reply(node, from, to, text);
}

void dt_server_calls_delivered(struct node *node, struct process *from, struct process *to,
                               const char *text) {
    struct server_call *call;
    struct request request;
    char key[REFERENCE_MAX];

    if (*text != '{')
        return;
    if (parse_request(text, &request)) {
        call = pending(node, request.reference);
        if (!call)
            begin_call(node, &request, to, true);
        else if (call->seen.server == &to->seen && call->seen.delivered == DT_NO_VALUE)
            call->seen.delivered = node->model->now;
        return;
    }
    if (reply(node, from, to, text))
        return;
    if (dt_skip(&text, "{'DOWN',") && reference(&text, key) && (call = pending(node, key)) &&
        call->seen.caller == &to->seen)
        end_call(call, DT_OUTCOME_DOWN, "");
}

/* -- Ends without a message --------------------------------------------------------- */

/* The oldest call with this process; NULL. */
static struct server_call *oldest_with(struct process *p) {
    struct server_call *own = g_queue_peek_head(&p->calls_by_itself);
    struct server_call *other = g_queue_peek_head(&p->calls_of_others);

    return !own || (other && other->number < own->number) ? other : own;
}

/* {timeout,{gen_server,call,[...]}} */
static bool is_timeout(const char *reason) {
    return dt_skip(&reason, "{timeout,{gen_") || dt_skip(&reason, "{{timeout,{gen_");
}

void dt_server_calls_exit(struct process *p, const char *reason) {
    enum dt_outcome of_caller = is_timeout(reason) ? DT_OUTCOME_TIMEOUT : DT_OUTCOME_UNKNOWN;
    struct server_call *call;

    while ((call = oldest_with(p)))
        end_call(call, call->seen.caller == &p->seen ? of_caller : DT_OUTCOME_DOWN, "");
}

/* `gen` waits in gen:do_call/4; where no scheduling is recorded, any `receive` may be its. */
void dt_server_calls_timeout(struct process *p) {
    struct server_call *last = g_queue_peek_tail(&p->calls_by_itself);

    if (last && (!*p->in || strcmp(p->in, "gen:do_call/4") == 0))
        end_call(last, DT_OUTCOME_TIMEOUT, "");
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_server_calls_new(struct node *node) {
    node->server_calls = g_new0(struct server_calls, 1);
    node->server_calls->pending = g_hash_table_new(g_str_hash, g_str_equal);
}

void dt_server_calls_end(struct node *node) {
    struct server_call *call;

    while ((call = g_queue_peek_head(&node->server_calls->by_age)))
        end_call(call, DT_OUTCOME_UNKNOWN, "");
}

void dt_server_calls_free(struct node *node) {
    g_hash_table_destroy(node->server_calls->pending);
    g_free(node->server_calls);
}
