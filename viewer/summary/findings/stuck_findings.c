/*
 * Processes that are stuck at the end of the recording, and those that wait for them:
 *
 *     5 customers -> orders -> price_cache -> stock_index        a chain: stock_index is the cause
 *                              price_cache <- stock_index        a circle: a deadlock
 *
 * A process is stuck if samples show no progress while messages wait in its queue, or while it is
 * suspended. Evidence that this is not its normal state: processes call it, its queue grows while
 * it waits in a function that handles no messages, or it waits for a lock.
 */
#include <string.h>

#include "shared/amounts.h"
#include "shared/arrays.h"
#include "shared/texts.h"
#include "summary/findings/rules.h"

/* Processes of a chain that are followed, and that are named. */
enum { FOLLOWED = 32, NAMED = 4 };

/* The processes of a chain or circle; or suspended ones in the same place, without callers. */
struct chain {
    struct dt_actor *last; /* the cause; of a circle, its first process in the order of pids */
    bool is_circle, is_group;
    GPtrArray *members; /* of a circle, in its order, and then the processes that wait for it */
    unsigned in_circle;
    uint64_t callers, messages;
    bool is_evident;
    enum dt_severity severity;
};

static void chain_free(void *data) {
    struct chain *chain = data;

    g_ptr_array_unref(chain->members);
    g_free(chain);
}

static const struct dt_sampled *sampled(const struct dt_actor *actor) {
    return actor->activity ? actor->activity->sampled : NULL;
}

static bool is_of_kind(const struct dt_wait *wait, const char *kind) {
    return wait && strcmp(wait->kind, kind) == 0;
}

/* How long it has made no progress; 0 if it has, or is no longer sampled. */
static int64_t stuck_for(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_sampled *of = sampled(actor);

    if (!of || of->still_since == DT_NO_VALUE || actor->ended != DT_NO_VALUE ||
        summary->period.end - of->last >= dt_limits.stuck_process.waits)
        return 0;
    int64_t since = of->still_since;
    /* Before, another process held the lock. */
    const struct dt_wait *wait = dt_waits_of(&summary->stopped, actor);
    if (is_of_kind(wait, "lock"))
        since = MAX(since, wait->since);
    return of->last - since;
}

/* What it waits for, if that is the present wait. */
static const struct dt_wait *wait_of(const struct dt_summary *summary,
                                     const struct dt_actor *actor) {
    const struct dt_wait *wait = dt_waits_of(&summary->stopped, actor);
    const struct dt_sampled *of = sampled(actor);

    return wait && of && of->still_since != DT_NO_VALUE && wait->last >= of->still_since ? wait
                                                                                         : NULL;
}

/* It handles no messages where it waits. */
static bool is_blocked(const struct dt_wait *wait) {
    return wait && *wait->kind;
}

static bool is_stuck(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_sampled *of = sampled(actor);

    return of && stuck_for(summary, actor) >= dt_limits.stuck_process.waits &&
           (of->last_queue > 0 || of->is_suspended || is_blocked(wait_of(summary, actor)));
}

static bool is_evident(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_sampled *of = sampled(actor);
    const struct dt_wait *wait = wait_of(summary, actor);

    if (!of)
        return false;
    if (of->is_suspended || is_of_kind(wait, "lock"))
        return true;
    return wait && of->last_queue > 0 &&
           (wait->callers > 0 || (is_blocked(wait) && of->last_queue > of->still_first_queue));
}

/* -- Chains ------------------------------------------------------------------------------ */

/* The process that holds up this one; NULL if none does. It is stuck, too, unless it holds a lock.
 */
static struct dt_actor *next_of(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_wait *wait = wait_of(summary, actor);

    if (!is_blocked(wait) || !wait->target || wait->target == actor)
        return NULL;
    return is_stuck(summary, wait->target) || is_of_kind(wait, "lock") ? wait->target : NULL;
}

/* The last process of the chain, or the one of the circle with the lowest number. */
static struct dt_actor *last_of(const struct dt_summary *summary, struct dt_actor *actor,
                                bool *is_circle) {
    struct dt_actor *next = NULL, *last, *at;

    for (unsigned i = 0; i < FOLLOWED && (next = next_of(summary, actor)); i++)
        actor = next;
    *is_circle = next != NULL;
    if (!next)
        return actor;
    last = actor;
    at = next_of(summary, actor);
    for (unsigned i = 0; i < FOLLOWED && at && at != actor; i++, at = next_of(summary, at))
        if (at->number < last->number)
            last = at;
    *is_circle = at == actor;
    return last;
}

static void add_member(const struct dt_summary *summary, struct chain *chain,
                       struct dt_actor *actor) {
    if (g_ptr_array_find(chain->members, actor, NULL))
        return;
    g_ptr_array_add(chain->members, actor);
    const struct dt_sampled *of = sampled(actor);
    const struct dt_wait *wait = wait_of(summary, actor);
    chain->messages += of ? of->last_queue : 0;
    chain->callers += wait ? wait->callers : 0;
    chain->is_evident |= of && is_stuck(summary, actor) && is_evident(summary, actor);
}

static struct chain *new_chain(const struct dt_summary *summary, GHashTable *chains,
                               struct dt_actor *last) {
    struct chain *chain = g_new0(struct chain, 1);

    chain->last = last;
    chain->members = g_ptr_array_new();
    g_hash_table_insert(chains, last, chain);
    add_member(summary, chain, last);
    return chain;
}

/* Suspended, and as far as is known, no process waits for it. */
static bool is_alone(const struct dt_summary *summary, const struct dt_actor *actor) {
    const struct dt_wait *wait = wait_of(summary, actor);

    return sampled(actor)->is_suspended && !(wait && wait->callers);
}

static struct chain *group_of(const struct dt_summary *summary, GHashTable *chains,
                              struct dt_actor *actor) {
    GHashTableIter each;
    void *value;

    g_hash_table_iter_init(&each, chains);
    while (g_hash_table_iter_next(&each, NULL, &value)) {
        struct chain *chain = value;
        if (chain->is_group && chain->last->node == actor->node &&
            strcmp(sampled(chain->last)->last_in, sampled(actor)->last_in) == 0)
            return chain;
    }
    struct chain *chain = new_chain(summary, chains, actor);
    chain->is_group = true;
    return chain;
}

static struct chain *chain_of(const struct dt_summary *summary, GHashTable *chains,
                              struct dt_actor *actor) {
    bool is_circle;
    struct dt_actor *last = last_of(summary, actor, &is_circle);
    struct chain *chain = g_hash_table_lookup(chains, last);

    if (chain)
        return chain;
    if (actor == last && is_alone(summary, actor))
        return group_of(summary, chains, actor);
    chain = new_chain(summary, chains, last);
    for (struct dt_actor *at = is_circle ? next_of(summary, last) : NULL; at && at != last;
         at = next_of(summary, at))
        add_member(summary, chain, at);
    chain->is_circle = is_circle;
    chain->in_circle = is_circle ? chain->members->len : 0;
    return chain;
}

/* -- Texts ------------------------------------------------------------------------------- */

static void put_actor(GString *text, const struct dt_actor *actor) {
    g_autofree char *name = dt_actor_show_where(actor);

    g_string_append(text, name);
}

/* "in gen:do_call/4"; the function is a text of the recording. */
static void put_place(GString *text, const struct dt_sampled *of) {
    if (of && *of->last_in)
        g_string_append_printf(text, " in %s", of->last_in);
}

/* It waited for a reply in its first sample, soon after the begin, and has sent no request since.
 */
static void put_since(const struct dt_summary *summary, GString *text,
                      const struct dt_actor *actor) {
    const struct dt_sampled *of = sampled(actor);
    const struct dt_wait *wait = wait_of(summary, actor);
    bool has_sends = actor->node && dt_is_recorded(actor->node->recorded, DT_RECORDED_SENDS);

    if (is_of_kind(wait, "call") && has_sends && !actor->activity->sent &&
        of->still_since == of->first && actor->began == DT_NO_VALUE &&
        of->first - summary->period.begin < 2 * DT_NS_PER_S)
        g_string_append(text, " (since before the recording)");
}

static const struct {
    const char *kind, *text;
} kinds[] = {
    {"call", ", waiting for a reply"},    {"io", ", waiting for an I/O server"},
    {"file", ", waiting for a file"},     {"lock", ", waiting for a lock"},
    {"socket", ", waiting for a socket"}, {"start", ", waiting for a process to start"},
};

static void put_wait(GString *text, const struct dt_wait *wait) {
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (is_of_kind(wait, kinds[i].kind))
            g_string_append_printf(text, "%s", kinds[i].text);
    if (!wait->target && !*wait->target_text)
        return;
    g_string_append(text, is_of_kind(wait, "lock") ? " held by " : " of ");
    if (wait->target)
        put_actor(text, wait->target);
    else
        g_string_append(text, wait->target_text);
}

static void put_circle(const struct dt_summary *summary, GString *text, const struct chain *chain) {
    int64_t least = INT64_MAX;

    for (unsigned i = 0; i < chain->in_circle; i++)
        least = MIN(least, stuck_for(summary, chain->members->pdata[i]));
    g_string_append_printf(text, "deadlock for %s", dt_show_ns(least).text);
    put_since(summary, text, chain->last);
    g_string_append(text, ": ");
    for (unsigned i = 0; i < chain->in_circle; i++) {
        put_actor(text, chain->members->pdata[i]);
        g_string_append(text, i == 0 ? " waits for " : ", which waits for ");
    }
    put_actor(text, chain->last);
}

/* The holder of a lock, which may have no samples and may be working. */
static void put_holder(const struct dt_summary *summary, GString *text, const struct chain *chain) {
    int64_t longest = 0;

    for (unsigned i = 0; i < chain->members->len; i++)
        longest = MAX(longest, stuck_for(summary, chain->members->pdata[i]));
    put_actor(text, chain->last);
    put_place(text, sampled(chain->last));
    g_string_append_printf(text, " holds a lock of `global`: others have waited for it for %s",
                           dt_show_ns(longest).text);
}

static void put_last(const struct dt_summary *summary, GString *text, const struct chain *chain) {
    const struct dt_sampled *of = sampled(chain->last);
    const struct dt_wait *wait = wait_of(summary, chain->last);

    if (!is_stuck(summary, chain->last)) {
        put_holder(summary, text, chain);
        return;
    }
    put_actor(text, chain->last);
    if (chain->is_group && chain->members->len > 1)
        g_string_append_printf(text, " and %u more", chain->members->len - 1);
    g_string_append_printf(text, " made no progress for %s%s",
                           dt_show_ns(stuck_for(summary, chain->last)).text,
                           of->is_suspended ? " (suspended)" : "");
    put_since(summary, text, chain->last);
    put_place(text, of);
    if (wait)
        put_wait(text, wait);
    uint64_t queue = chain->is_group ? chain->messages : of->last_queue;
    if (queue) {
        g_autofree char *messages = dt_counted(queue, "message");
        g_string_append_printf(text, ", with %s in %s", messages,
                               chain->is_group && chain->members->len > 1 ? "their queues"
                                                                          : "its queue");
    }
}

/* The processes that wait for the cause, directly or not, and the number of other callers. */
static void put_behind(const struct dt_summary *summary, GString *text, const struct chain *chain) {
    unsigned first = chain->is_circle ? chain->in_circle : 1;
    uint64_t named = 0;

    if (chain->is_group)
        return;
    for (unsigned i = 0; i < chain->members->len; i++) {
        const struct dt_wait *wait = wait_of(summary, chain->members->pdata[i]);
        named += is_of_kind(wait, "call") && *wait->target_text &&
                 g_ptr_array_find(chain->members, wait->target, NULL);
    }
    for (unsigned i = first; i < chain->members->len && i < first + NAMED; i++) {
        g_string_append(text, i == first ? "; behind it wait " : ", ");
        put_actor(text, chain->members->pdata[i]);
    }
    if (chain->members->len > first + NAMED)
        g_string_append_printf(text, " and %u more", chain->members->len - first - NAMED);
    if (chain->callers > named) {
        g_autofree char *callers = dt_counted(chain->callers - named, "caller");
        g_string_append_printf(text, "; %s wait%s", callers,
                               chain->callers - named == 1 ? "s" : "");
    }
}

/* -- Findings ---------------------------------------------------------------------------- */

static enum dt_severity severity_of(const struct dt_summary *summary, const struct chain *chain) {
    const struct dt_sampled *of = sampled(chain->last);
    const struct dt_wait *wait = wait_of(summary, chain->last);
    bool is_call = !is_blocked(wait) || is_of_kind(wait, "call");
    bool is_behind = chain->members->len > 1 || chain->callers > 0;

    if (chain->is_group)
        return chain->messages ? DT_HIGH : DT_MEDIUM;
    if (chain->is_circle || (of && of->is_suspended))
        return DT_HIGH;
    /* A lock of `global' may be held on purpose, by the leader of several processes. */
    if (!chain->callers && !chain->messages)
        return DT_LOW;
    return is_behind && (!is_call || !is_stuck(summary, chain->last)) ? DT_HIGH : DT_MEDIUM;
}

static void add(struct dt_summary *summary, const struct chain *chain) {
    g_autoptr(GString) text = g_string_new(NULL);

    if (chain->is_circle)
        put_circle(summary, text, chain);
    else
        put_last(summary, text, chain);
    put_behind(summary, text, chain);
    dt_put_stacks(summary, text, DT_RULE_stuck_process, (void *)chain->members->pdata,
                  chain->is_circle ? MIN(chain->in_circle, NAMED) : 1);
    dt_find(summary, DT_RULE_stuck_process, chain->severity, chain->last, "%s", text->str);
}

/* Deadlocks first, then by severity, then those that hold up most. */
static int worst_first(const void *a, const void *b) {
    const struct chain *x = *(struct chain *const *)a, *y = *(struct chain *const *)b;
    int by = (int)y->is_circle - (int)x->is_circle;

    if (!by)
        by = (int)x->severity - (int)y->severity;
    if (!by)
        by = dt_compare((int64_t)(y->callers + y->members->len),
                        (int64_t)(x->callers + x->members->len));
    return by ? by : dt_compare((int64_t)x->last->number, (int64_t)y->last->number);
}

GHashTable *dt_find_stuck(struct dt_summary *summary) {
    GHashTable *found = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) chains = g_hash_table_new_full(NULL, NULL, NULL, chain_free);
    g_autoptr(GPtrArray) actors = dt_top_copy(&summary->processes);

    for (unsigned i = 0; i < actors->len; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);
        if (is_stuck(summary, actor))
            add_member(summary, chain_of(summary, chains, actor), actor);
    }
    g_autoptr(GPtrArray) rows = dt_rows_of(chains);
    for (unsigned i = 0; i < rows->len; i++) {
        struct chain *chain = g_ptr_array_index(rows, i);
        chain->severity = severity_of(summary, chain);
    }
    g_ptr_array_sort(rows, worst_first);
    unsigned reported = 0;
    for (unsigned i = 0; i < rows->len && reported < dt_limits.stuck_process.per_rule; i++) {
        struct chain *chain = g_ptr_array_index(rows, i);
        if (!chain->is_evident && !chain->is_circle)
            continue;
        add(summary, chain);
        reported++;
        for (unsigned m = 0; m < chain->members->len; m++)
            g_hash_table_add(found, chain->members->pdata[m]);
    }
    return found;
}
