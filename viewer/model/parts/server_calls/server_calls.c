/*
 * Calls of gen_server and similar behaviours, and of OTP's own servers (protocols.def):
 *
 *     {'$gen_call',{<0.90.0>,[alias|#Ref<0.1.2.3>]},Request}   or {<0.90.0>,#Ref<0.1.2.3>}
 *     {[alias|#Ref<0.1.2.3>],Reply}                            or {#Ref<0.1.2.3>,Reply}
 *     {'DOWN',#Ref<0.1.2.3>,process,<0.91.0>,noproc}
 *
 * The reference, which is also an alias of the caller, identifies the call. A call without one is
 * identified by its processes: the caller waits for the reply before it calls the server again. A
 * call is pending from its request to its end. Pending calls are in a table by this key: the table
 * of the caller's node, if that node is recorded, where the node number of the reference is 0.
 */
#include "model/parts/server_calls/server_calls.h"

#include <string.h>

#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "model/parts/scheduling.h"
#include "model/parts/server_calls/protocols.h"
#include "shared/remote_ids.h"
#include "shared/texts.h"

enum {
    /* Requests without a reply could stay pending forever, so the oldest are dropped. */
    PENDING_MAX = 100000,
    /* Only a prefix of the request is compared, because a reason may be truncated. */
    COMPARED_OF_REQUEST = 24,
    /* A process is preempted after 4,000 reductions, which take longer. */
    SHORTEST_SLICE_NS = 20 * 1000,
    /* A process that is preempted for longer lacks CPU. */
    LONGEST_PREEMPTION_NS = 1000 * 1000,
    /* Shorter gaps may be preemption or a timeout of 0, not waiting. */
    SHORTEST_WAIT_NS = 500 * 1000,
    /* A request that is sent shortly before the server stops may arrive after the server last
       looked at its mailbox. */
    JUST_BEFORE_NS = 100 * 1000,
};

/* What the caller did after the request. */
enum next {
    NEXT_UNKNOWN,
    NEXT_WENT_ON, /* continued without waiting: gen_server:send_request/2 */
    NEXT_WAITED,  /* waited, and then continued */
};

struct server_call {
    struct dt_server_call seen;
    struct node *node; /* the node whose table has it */
    uint64_t number;
    char *key, *request;
    int64_t runnable; /* dt_runnable_ns() of the server when the call began */
    enum dt_protocol_number protocol;
    bool is_alias; /* the reference is an alias */
    enum next next;
    GList *link, *of_caller, *of_server;
};

/* Of a node. */
struct server_calls {
    GHashTable *pending; /* key -> call */
    GQueue by_age;       /* oldest first */
    int64_t lost;        /* events were lost up to this time */
};

/* Of a process: its pending calls as a server and as a caller, oldest first. */
struct calling {
    GQueue of_others, by_itself;
    int64_t serves_since; /* when it began to work on those of others; DT_NO_VALUE if it has not */
    int64_t runnable;     /* dt_runnable_ns() then */
    /* As a server: since when it has stopped in its loop, preempted or waiting; DT_NO_VALUE if it
       runs or certainly waits. */
    int64_t may_wait_since;
    /* As a caller: the call whose reply it waits for, NULL if none; when it first stopped to wait;
       when it last started running again, DT_NO_VALUE if it has not. */
    struct server_call *awaited;
    int64_t waits_since, woken;
    /* As a server: the function in which it stopped after it had replied to all callers, NULL if
       unknown; whether it has replied since it last stopped; when it last stopped to wait for
       requests. */
    const char *idles_in;
    bool has_replied;
    int64_t idled;
};

static struct calling *has_calls(struct process *p) {
    if (!p->calling) {
        p->calling = g_new0(struct calling, 1);
        p->calling->idled = p->calling->may_wait_since = DT_NO_VALUE;
    }
    return p->calling;
}

/* -- Pending calls ------------------------------------------------------------------ */

static struct process *live(struct dt_process *seen) {
    return (struct process *)seen;
}

static void end_call_at(struct server_call *call, enum dt_outcome outcome, const char *reply,
                        int64_t time) {
    struct node *node = call->node;
    struct process *caller = live(call->seen.caller), *server = live(call->seen.server);

    call->seen.outcome = outcome;
    call->seen.reply = reply;
    call->seen.ended = time;
    DT_EMIT(node->world, server_call, &call->seen);
    g_hash_table_remove(node->server_calls->pending, call->key);
    g_queue_delete_link(&node->server_calls->by_age, call->link);
    if (caller->calling->awaited == call)
        caller->calling->awaited = NULL;
    g_queue_delete_link(&caller->calling->by_itself, call->of_caller);
    g_queue_delete_link(&server->calling->of_others, call->of_server);
    g_free(call->key);
    g_free(call->request);
    g_free(call);
    dt_process_unref(caller);
    dt_process_unref(server);
}

static void end_call(struct server_call *call, enum dt_outcome outcome, const char *reply) {
    end_call_at(call, outcome, reply, call->node->world->now);
}

static GList *append(GQueue *queue, struct server_call *call) {
    g_queue_push_tail(queue, call);
    return queue->tail;
}

/* The node whose table has a reference, and the text of the reference there, to be freed by g_free.
 */
static struct node *table_of(struct node *node, const char *reference, char **there) {
    struct node *home = dt_home(node, reference);

    if (!home)
        home = node;
    *there = home == node ? g_strdup(reference) : dt_remote_at_home(reference);
    return home;
}

/* The node whose table has a call, and its key there, to be freed by g_free. */
static struct node *place_of(struct node *node, const struct process *caller,
                             const struct process *server, const struct dt_call_text *text,
                             char **key) {
    if (*text->id == '#')
        return table_of(node, text->id, key);
    if (*text->id)
        *key = g_strdup_printf("%" PRIu64 " %s", caller->seen.number, text->id);
    else
        *key = g_strdup_printf("%" PRIu64 " %" PRIu64, caller->seen.number, server->seen.number);
    return caller->node;
}

static struct server_call *pending_at(const struct node *home, const char *key) {
    return g_hash_table_lookup(home->server_calls->pending, key);
}

static struct server_call *pending(struct node *node, const char *reference) {
    g_autofree char *there = NULL;
    const struct node *home = table_of(node, reference, &there);

    return pending_at(home, there);
}

/* The pending call of a request or a reply; NULL if none. The server of a reply may be unknown. */
static struct server_call *pending_of(struct node *node, const struct process *caller,
                                      const struct process *server,
                                      const struct dt_call_text *text) {
    g_autofree char *key = NULL;
    const struct node *home;

    if (!*text->id && !server)
        return NULL;
    home = place_of(node, caller, server, text, &key);
    return pending_at(home, key);
}

/* A server begins to work on requests. */
static void serve(struct process *server) {
    server->calling->serves_since = server->node->world->now;
    server->calling->runnable = dt_runnable_ns(server);
}

static void begin_call(struct node *node, struct process *caller,
                       const struct dt_call_text *request, struct process *server,
                       bool is_delivered) {
    struct server_calls *all;
    struct server_call *call = pending_of(node, caller, server, request);
    struct calling *serving;

    /* A request that another server forwards belongs to the call of the first one. */
    if (call && (*request->id == '#' || call->seen.server != &server->seen))
        return;
    if (call)
        end_call(call, DT_OUTCOME_UNKNOWN, "");
    call = g_new0(struct server_call, 1);
    call->node = place_of(node, caller, server, request, &call->key);
    call->protocol = request->protocol;
    all = call->node->server_calls;
    call->number = ++node->world->server_calls;
    call->request = dt_gen_inner(request->term);
    call->is_alias = request->is_alias;
    call->seen = (struct dt_server_call){.caller = &caller->seen,
                                         .server = &server->seen,
                                         .request = call->request,
                                         .reply = "",
                                         .began = node->world->now,
                                         .delivered = is_delivered ? node->world->now : DT_NO_VALUE,
                                         .taken = DT_NO_VALUE,
                                         .deferred = DT_NO_VALUE};
    call->runnable = dt_runnable_ns(server);
    dt_process_ref(caller);
    dt_process_ref(server);
    serving = has_calls(server);
    if (!serving->of_others.length)
        serving->serves_since = DT_NO_VALUE;
    if (!serving->of_others.length && dt_runs(server->seen.state))
        serve(server);
    call->link = append(&all->by_age, call);
    call->of_caller = append(&has_calls(caller)->by_itself, call);
    call->of_server = append(&serving->of_others, call);
    g_hash_table_insert(all->pending, call->key, call);
    if (all->by_age.length > PENDING_MAX)
        end_call(g_queue_peek_head(&all->by_age), DT_OUTCOME_UNKNOWN, "");
}

struct process *dt_alias(struct node *node, const char *text) {
    char alias[DT_REFERENCE];
    struct server_call *call = dt_gen_reference(&text, alias) ? pending(node, alias) : NULL;

    return call ? live(call->seen.caller) : NULL;
}

/* -- Without deliveries ------------------------------------------------------------- */

/* The function in which `gen` waits for replies. */
static const char waits_in[] = "gen:do_call/4";

/* A traced process runs at each message, unless a sample shows that it is suspended. A process that
   was already sensitive has no events; one that becomes sensitive later still seems to run. */
static bool has_run_since(const struct process *p, int64_t time) {
    return p->seen.state == DT_STATE_WAITING ||
           (p->seen.state != DT_STATE_UNKNOWN && p->seen.since > time);
}

/* Whether a reply would have been recorded. It would not if the server is in another node or is
   not traced, for example because it is sensitive. That is unknown if the server waits for requests
   again, because it may have left the reply to a timer. */
static bool is_reply_seen(const struct server_call *call) {
    const struct process *server = live(call->seen.server);

    return call->is_alias && server->seen.kind == DT_PROCESS &&
           server->seen.node == call->seen.caller->node &&
           (*dt_started_in(server) || *dt_stopped_in(server)) &&
           has_run_since(server, call->seen.began) && server->calling->idled < call->seen.began &&
           call->seen.began > MAX(server->node->server_calls->lost, server->node->unsure);
}

/* It no longer waits. Returns the call whose reply it was waiting for; NULL if none. */
static struct server_call *leave(struct calling *calls) {
    struct server_call *call = g_steal_pointer(&calls->awaited);

    if (call)
        call->next = NEXT_WAITED;
    return call;
}

/* The last call, if it is one of `gen`; NULL if not. */
static struct server_call *last_of_gen(const struct calling *calls) {
    struct server_call *last = g_queue_peek_tail((GQueue *)&calls->by_itself);

    return last && last->protocol == DT_PROTOCOL_gen ? last : NULL;
}

/* A caller that waited, was woken and now does something else no longer expects a reply. If `gen`
   waits again, it does not wait for an earlier call: it may be in gen_event:sync_notify/2 or
   sys:get_state/1. */
static void gone_on(const struct process *p) {
    struct calling *calls = p->calling;
    struct server_call *call = leave(calls), *last;

    if (call && calls->woken != DT_NO_VALUE &&
        calls->woken - calls->waits_since >= SHORTEST_WAIT_NS && !p->node->seen.has_deliveries &&
        is_reply_seen(call))
        end_call_at(call, DT_OUTCOME_TIMEOUT, "", calls->woken);
    last = last_of_gen(calls);
    if (last && last->next == NEXT_UNKNOWN)
        last->next = NEXT_WENT_ON;
}

/* Whether it waits for requests: in the loop of a behaviour, possibly hibernated, or in the
   function in which it stopped earlier when it had replied to all callers. */
static bool idles(const struct process *p) {
    const char *in = dt_stopped_in(p);

    return g_str_has_prefix(in, "gen_") || g_str_has_prefix(in, "proc_lib:") ||
           (p->calling->idles_in && strcmp(in, p->calling->idles_in) == 0);
}

/* -- Deferred replies --------------------------------------------------------------- */

/* The functions in which behaviours wait for any message. */
static const char *const loops[] = {
    "gen_server:loop/", "gen_statem:loop_receive/", "gen_event:fetch_msg/", "gen_fsm:loop/",
    "proc_lib:", /* hibernated */
};

static bool waits_in_loop(const struct process *p) {
    for (unsigned i = 0; i < G_N_ELEMENTS(loops); i++)
        if (g_str_has_prefix(dt_stopped_in(p), loops[i]))
            return true;
    return dt_call_is_loop(dt_stopped_in(p));
}

/* When the request reached the server, as far as known. */
static int64_t received(const struct server_call *call) {
    bool is_reported =
        call->seen.server->node->has_deliveries && call->seen.delivered != DT_NO_VALUE;

    return is_reported ? call->seen.delivered : call->seen.began;
}

static void take_call(struct server_call *call) {
    const struct calling *serving = live(call->seen.server)->calling;
    bool is_waited_for = serving->serves_since >= received(call);

    call->seen.taken = MAX(serving->serves_since, received(call));
    call->seen.runnable = is_waited_for ? MAX(serving->runnable - call->runnable, 0) : 0;
}

/* A server that waits in its loop has taken all requests that had reached it. It leaves their
   replies to a later message, a timer or another process. A request that was sent just before the
   server stopped may have arrived after it last looked at its mailbox. */
static void defer(struct process *server, int64_t stopped) {
    struct calling *serving = server->calling;

    if (serving->serves_since == DT_NO_VALUE)
        return;
    for (GList *i = serving->of_others.head; i; i = i->next) {
        struct server_call *call = i->data;

        if (call->seen.deferred != DT_NO_VALUE ||
            (received(call) >= serving->woken && stopped - received(call) <= JUST_BEFORE_NS))
            continue;
        take_call(call);
        call->seen.deferred = stopped;
    }
    serving->serves_since = DT_NO_VALUE;
}

/* A server that is preempted in its loop looks like one that waits there. Preemption comes after a
   long run, and most preempted processes run again soon. */
static void stopped_in_loop(struct process *server) {
    struct calling *serving = server->calling;
    int64_t now = server->node->world->now;

    if (now - serving->woken < SHORTEST_SLICE_NS)
        defer(server, now);
    else
        serving->may_wait_since = now;
}

static void stopped(struct process *p) {
    struct calling *calls = p->calling;
    struct server_call *last = last_of_gen(calls);

    if (p->seen.state != DT_STATE_WAITING)
        return;
    if (waits_in_loop(p))
        stopped_in_loop(p);
    if (calls->has_replied && !calls->of_others.length)
        calls->idles_in = dt_stopped_in(p);
    calls->has_replied = false;
    if (idles(p))
        calls->idled = p->node->world->now;
    if (strcmp(dt_stopped_in(p), waits_in) != 0) {
        gone_on(p);
        return;
    }
    last = last && last->next == NEXT_UNKNOWN ? last : NULL;
    if (calls->awaited != last)
        calls->waits_since = p->node->world->now;
    calls->awaited = last;
    calls->woken = DT_NO_VALUE;
}

/* -- Messages ----------------------------------------------------------------------- */

static bool reply(struct node *node, struct process *from, struct process *to, const char *text) {
    struct dt_call_text answer;
    struct server_call *call;
    struct calling *serving;
    bool is_sure;
    char *term;

    if (!dt_call_reply(text, &answer) || !(call = pending_of(node, to, from, &answer)) ||
        call->seen.caller != &to->seen || !dt_call_replies_match(call->protocol, answer.protocol))
        return false;
    /* Without a reference, it may be the reply to a later request that was lost. */
    is_sure = *answer.id == '#' || call->seen.began > call->node->server_calls->lost;
    serving = live(call->seen.server)->calling;
    if (from && call->seen.server == &from->seen) {
        /* A server takes requests one by one: this one after its last reply or, if it was idle,
           when it ran next. */
        if (call->seen.deferred == DT_NO_VALUE && dt_runs(from->seen.state) &&
            serving->serves_since != DT_NO_VALUE)
            take_call(call);
        serving->has_replied = true;
    }
    serve(live(call->seen.server));
    term = dt_gen_inner(answer.term);
    end_call(call, is_sure ? DT_OUTCOME_REPLY : DT_OUTCOME_UNKNOWN, term);
    g_free(term);
    return true;
}

/* If deliveries are not recorded, no later event shows that the server has exited. A request that
   another server forwards still belongs to the call of that server. */
static void called(struct node *node, const struct dt_call_text *request, struct process *server) {
    struct process *caller = dt_process_anywhere(node, request->caller);
    struct server_call *call;

    if (!caller)
        return;
    begin_call(node, caller, request, server, false);
    if (server->has_exited && !node->seen.has_deliveries &&
        (call = pending_of(node, caller, server, request)) && call->seen.server == &server->seen)
        end_call(call, DT_OUTCOME_DOWN, "");
}

void dt_server_calls_sent(struct node *node, struct process *from, struct process *to,
                          const char *text) {
    struct dt_call_text request;

    if (from && from->calling)
        gone_on(from);
    if (!to || *text != '{')
        return;
    if (dt_call_request(text, &to->seen, &request))
        called(node, &request, to);
    else
        reply(node, from, to, text);
}

/* If the send of a request was reported, but the call is not pending, the call has already ended,
   and the server is late. */
void dt_server_calls_delivered(struct node *node, struct process *from, struct process *to,
                               const char *text, bool is_reported) {
    struct process *caller;
    struct server_call *call;
    struct dt_call_text request;
    char key[DT_REFERENCE];

    if (!to || *text != '{')
        return;
    if (dt_call_request(text, &to->seen, &request)) {
        caller = dt_process_anywhere(node, request.caller);
        if (!caller)
            return;
        call = pending_of(node, caller, to, &request);
        if (!call && !is_reported)
            begin_call(node, caller, &request, to, true);
        else if (call && call->seen.server == &to->seen && call->seen.delivered == DT_NO_VALUE)
            call->seen.delivered = node->world->now;
        return;
    }
    if (reply(node, from, to, text))
        return;
    if (dt_skip(&text, "{'DOWN',") && dt_gen_reference(&text, key) && (call = pending(node, key)) &&
        call->seen.caller == &to->seen)
        end_call(call, DT_OUTCOME_DOWN, "");
}

/* -- Scheduling ----------------------------------------------------------------------- */

/* The caller has copied the request, which is not a wait for the server. */
static void begin_after_copy(struct process *server) {
    for (GList *i = server->calling->of_others.head; i; i = i->next) {
        struct server_call *call = i->data;

        if (call->seen.began == dt_copy_began(server))
            call->seen.began = dt_copy_ended(server);
    }
}

static void began_to_run(struct process *p) {
    struct calling *calls = p->calling;
    int64_t now = p->node->world->now;

    if (calls->may_wait_since != DT_NO_VALUE && now - calls->may_wait_since > LONGEST_PREEMPTION_NS)
        defer(p, calls->may_wait_since);
    calls->may_wait_since = DT_NO_VALUE;
    calls->woken = now;
    if (strcmp(dt_started_in(p), waits_in) != 0)
        leave(calls);
    if (dt_copy_began(p) != DT_NO_VALUE)
        begin_after_copy(p);
    if (calls->of_others.length && calls->serves_since == DT_NO_VALUE)
        serve(p);
}

void dt_server_calls_scheduled(struct process *p, bool runs) {
    if (p->calling)
        (runs ? began_to_run : stopped)(p);
}

/* -- Ends without a message --------------------------------------------------------- */

/* The oldest call with this process; NULL if none. */
static struct server_call *oldest_with(struct calling *calls) {
    struct server_call *own = g_queue_peek_head(&calls->by_itself);
    struct server_call *other = g_queue_peek_head(&calls->of_others);

    return !own || (other && other->number < own->number) ? other : own;
}

/* Whether the reason names this call. A process that exits because of a link has the reason of the
   linked process, which names a call of that process. */
static bool is_in(const struct server_call *call, const char *reason) {
    char start[COMPARED_OF_REQUEST];

    g_strlcpy(start, call->request, sizeof start);
    return strstr(reason, start);
}

static bool is_of_reason(const struct server_call *call, const struct calling *calls,
                         const char *reason) {
    return last_of_gen(calls) == call && call->next != NEXT_WENT_ON && is_in(call, reason);
}

void dt_server_calls_exited(struct process *p, const char *reason) {
    enum dt_outcome outcome = dt_gen_outcome(reason);
    struct calling *calls = p->calling;
    struct server_call *call;

    while (calls && (call = oldest_with(calls))) {
        if (call->seen.caller != &p->seen)
            end_call(call, DT_OUTCOME_DOWN, "");
        else
            end_call(call, is_of_reason(call, calls, reason) ? outcome : DT_OUTCOME_UNKNOWN, "");
    }
}

/* If scheduling is not recorded, any `receive` may be that of `gen`. */
void dt_server_calls_timed_out(struct process *p) {
    struct server_call *last = p->calling ? last_of_gen(p->calling) : NULL;
    const char *in = dt_started_in(p);

    if (last && (!*in || strcmp(in, waits_in) == 0))
        end_call(last, DT_OUTCOME_TIMEOUT, "");
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_server_calls_new(struct node *node) {
    struct server_calls *all = node->server_calls = g_new0(struct server_calls, 1);

    all->pending = g_hash_table_new(g_str_hash, g_str_equal);
    all->lost = DT_NO_VALUE;
}

void dt_server_calls_lost(struct node *node, int64_t begin) {
    (void)begin;
    node->server_calls->lost = node->world->now;
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
