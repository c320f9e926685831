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
#include "model/parts/server_calls.h"

#include <string.h>

#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "model/parts/scheduling.h"
#include "shared/far.h"
#include "shared/texts.h"

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

/* Of a node. */
struct server_calls {
    GHashTable *pending; /* reference -> call */
    GQueue by_age;       /* oldest first */
};

/* Of a process: pending ones, oldest first. */
struct calling {
    GQueue of_others, by_itself;
    int64_t serves_since; /* when it began with those of others; DT_NO_VALUE if it has not */
};

static struct server_calls *calls_in(const struct node *node) {
    return node->of[DT_PART_SERVER_CALLS];
}

/* NULL before its first call. */
static struct calling *calling(const struct process *p) {
    return p->of[DT_PART_SERVER_CALLS];
}

static struct calling *has_calls(struct process *p) {
    if (!calling(p))
        p->of[DT_PART_SERVER_CALLS] = g_new0(struct calling, 1);
    return calling(p);
}

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
    call->seen.ended = node->world->now;
    DT_TELL(node->world, server_call, &call->seen);
    g_hash_table_remove(calls_in(node)->pending, call->reference);
    g_queue_delete_link(&calls_in(node)->by_age, call->link);
    g_queue_delete_link(&calling(caller)->by_itself, call->of_caller);
    g_queue_delete_link(&calling(server)->of_others, call->of_server);
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
    struct server_call *call = g_hash_table_lookup(calls_in(home)->pending, there);

    g_free(there);
    return call;
}

static void begin_call(struct node *node, const struct request *request, struct process *server,
                       bool is_delivered) {
    struct process *caller = dt_process_anywhere(node, request->caller);
    struct server_calls *all;
    struct server_call *call;
    struct calling *serving;

    if (!caller || !server || pending(node, request->reference))
        return;
    call = g_new0(struct server_call, 1);
    call->node = table_of(node, request->reference, &call->reference);
    all = calls_in(call->node);
    call->number = ++node->world->numbers[DT_PART_SERVER_CALLS];
    call->request = inner(request->term);
    call->seen = (struct dt_server_call){.caller = &caller->seen,
                                         .server = &server->seen,
                                         .request = call->request,
                                         .reply = "",
                                         .began = node->world->now,
                                         .delivered = is_delivered ? node->world->now : DT_NO_VALUE,
                                         .taken = DT_NO_VALUE};
    dt_process_ref(caller);
    dt_process_ref(server);
    serving = has_calls(server);
    if (!serving->of_others.length)
        serving->serves_since = dt_runs(server->seen.state) ? node->world->now : DT_NO_VALUE;
    call->link = append(&all->by_age, call);
    call->of_caller = append(&has_calls(caller)->by_itself, call);
    call->of_server = append(&serving->of_others, call);
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

    if (!dt_runs(server->seen.state) || calling(server)->serves_since == DT_NO_VALUE)
        return DT_NO_VALUE;
    return MAX(calling(server)->serves_since, received);
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
    calling(live(call->seen.server))->serves_since = node->world->now;
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
            call->seen.delivered = node->world->now;
        return;
    }
    if (reply(node, from, to, text))
        return;
    if (dt_skip(&text, "{'DOWN',") && reference(&text, key) && (call = pending(node, key)) &&
        call->seen.caller == &to->seen)
        end_call(call, DT_OUTCOME_DOWN, "");
}

/* -- Scheduling ----------------------------------------------------------------------- */

void dt_server_calls_scheduled(struct process *p, bool runs) {
    struct calling *calls = calling(p);

    if (runs && calls && calls->of_others.length && calls->serves_since == DT_NO_VALUE)
        calls->serves_since = p->node->world->now;
}

/* -- Ends without a message --------------------------------------------------------- */

/* The oldest call with this process; NULL. */
static struct server_call *oldest_with(struct calling *calls) {
    struct server_call *own = g_queue_peek_head(&calls->by_itself);
    struct server_call *other = g_queue_peek_head(&calls->of_others);

    return !own || (other && other->number < own->number) ? other : own;
}

/* {timeout,{gen_server,call,[...]}} */
static bool is_timeout(const char *reason) {
    return dt_skip(&reason, "{timeout,{gen_") || dt_skip(&reason, "{{timeout,{gen_");
}

void dt_server_calls_exited(struct process *p, const char *reason) {
    enum dt_outcome of_caller = is_timeout(reason) ? DT_OUTCOME_TIMEOUT : DT_OUTCOME_UNKNOWN;
    struct server_call *call;

    while (calling(p) && (call = oldest_with(calling(p))))
        end_call(call, call->seen.caller == &p->seen ? of_caller : DT_OUTCOME_DOWN, "");
}

/* `gen` waits in gen:do_call/4; where no scheduling is recorded, any `receive` may be its. */
void dt_server_calls_timed_out(struct process *p) {
    struct server_call *last = calling(p) ? g_queue_peek_tail(&calling(p)->by_itself) : NULL;
    const char *in = dt_started_in(p);

    if (last && (!*in || strcmp(in, "gen:do_call/4") == 0))
        end_call(last, DT_OUTCOME_TIMEOUT, "");
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_server_calls_new(struct node *node) {
    struct server_calls *all = node->of[DT_PART_SERVER_CALLS] = g_new0(struct server_calls, 1);

    all->pending = g_hash_table_new(g_str_hash, g_str_equal);
}

void dt_server_calls_end(struct node *node) {
    struct server_call *call;

    while ((call = g_queue_peek_head(&calls_in(node)->by_age)))
        end_call(call, DT_OUTCOME_UNKNOWN, "");
}

void dt_server_calls_free(struct node *node) {
    g_hash_table_destroy(calls_in(node)->pending);
    g_free(calls_in(node));
}
