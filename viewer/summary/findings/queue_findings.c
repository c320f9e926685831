/* Message queues: from samples, else from messages in flight. A process has at most one finding. */
#include "shared/amounts.h"
#include "summary/findings/rules.h"

/* Messages per second from the first to the last sample; 0 if the queue does not grow. */
static double growth(const struct dt_sampled *of) {
    int64_t ns = of->last - of->first;

    if (of->count < dt_limits.growing_queue.samples || ns <= 0 ||
        of->last_queue <= of->first_queue ||
        !dt_is_share((int64_t)of->rises, (int64_t)of->count - 1, dt_limits.growing_queue.steps))
        return 0;
    return (double)(of->last_queue - of->first_queue) * DT_NS_PER_S / (double)ns;
}

static bool grows(struct dt_summary *summary, struct dt_actor *actor) {
    const struct dt_sampled *of = actor->activity->sampled;
    double per_s = growth(of);

    if (of->last_queue < dt_limits.growing_queue.messages || per_s < dt_limits.growing_queue.per_s)
        return false;
    g_autofree char *name = dt_actor_show_where(actor);
    dt_find(summary, DT_RULE_growing_queue, DT_HIGH, actor,
            "%s: its queue grew by %.0f messages per second for %s, to %" PRIu64
            " messages (%s of memory)",
            name, per_s, dt_show_ns(of->last - of->first).text, of->last_queue,
            dt_show_bytes(of->max_memory).text);
    return true;
}

static bool is_stopped(struct dt_summary *summary, struct dt_actor *actor) {
    const struct dt_sampled *of = actor->activity->sampled;

    if (of->longest_still < dt_limits.stuck_process.still || !of->still_queue ||
        (!of->was_suspended && of->still_queue < dt_limits.stuck_process.messages))
        return false;
    g_autofree char *name = dt_actor_show_where(actor);
    g_autofree char *messages = dt_counted(of->still_queue, "message");
    dt_find(summary, DT_RULE_stuck_process, of->was_suspended ? DT_HIGH : DT_MEDIUM, actor,
            "%s made no progress for %s%s, with %s in its queue", name,
            dt_show_ns(of->longest_still).text, of->was_suspended ? " (suspended)" : "", messages);
    return true;
}

/* Functions of OTP that wait for an answer without a new reference in it, so that the VM cannot
   skip the messages that were there before the request; and the release that changed this. */
static const struct {
    const char *begin;
    int64_t until;
} selective[] = {
    {"prim_inet:", 26},
    {"code_server:call/", INT64_MAX},
    {"dets:req/", INT64_MAX},
    {"erl_prim_loader:request/", INT64_MAX},
    {"mnesia_locker:", INT64_MAX},
};

static bool is_selective(const struct dt_actor *actor, const char *function) {
    int64_t otp = actor->node ? g_ascii_strtoll(actor->node->otp, NULL, 10) : 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(selective); i++)
        if (g_str_has_prefix(function, selective[i].begin))
            return otp > 0 && otp < selective[i].until;
    return false;
}

static bool walks(struct dt_summary *summary, struct dt_actor *actor) {
    const struct dt_sampled *of = actor->activity->sampled;
    const struct dt_walk *walk = of->walk;
    int64_t busy = actor->activity->run + actor->activity->collecting;

    if (!walk || walk->longest < dt_limits.selective_receive.samples ||
        !dt_is_share((int64_t)walk->longest, (int64_t)walk->samples,
                     dt_limits.selective_receive.of_samples) ||
        !is_selective(actor, walk->longest_in) ||
        !dt_is_share(busy, dt_recorded(summary), dt_limits.selective_receive.share))
        return false;
    g_autofree char *name = dt_actor_show_where(actor);
    dt_find(summary, DT_RULE_selective_receive, DT_HIGH, actor,
            "%s searches its queue of %" PRIu64 " messages for one message in %s (%" PRIu64
            " of %" PRIu64 " samples), and ran for %s of %s",
            name, of->last_queue, walk->longest_in, walk->longest, walk->samples,
            dt_show_share((double)busy / (double)dt_recorded(summary)).text,
            dt_recorded_words(summary));
    return true;
}

static bool is_long(struct dt_summary *summary, struct dt_actor *actor) {
    uint64_t queue = actor->activity->sampled->max_queue;

    if (queue < dt_limits.long_queue.messages)
        return false;
    g_autofree char *name = dt_actor_show_where(actor);
    dt_find(summary, DT_RULE_long_queue, queue >= dt_limits.long_queue.huge ? DT_HIGH : DT_MEDIUM,
            actor, "%s: %" PRIu64 " messages in its queue", name, queue);
    return true;
}

static void sampled(struct dt_summary *summary, GHashTable *stuck) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_queue);
    unsigned found = 0;

    for (unsigned i = 0; i < actors->len && found < dt_limits.long_queue.per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (!actor->activity->sampled || !actor->activity->sampled->max_queue)
            break;
        if (g_hash_table_contains(stuck, actor) || dt_is_formatting(summary, actor))
            continue;
        /* The cause first: a queue gets long because its process is suspended. */
        bool is_suspended = actor->activity->sampled->was_suspended && is_stopped(summary, actor);
        found += is_suspended || walks(summary, actor) || grows(summary, actor) ||
                 is_stopped(summary, actor) || is_long(summary, actor);
    }
}

static void in_flight(struct dt_summary *summary) {
    g_autoptr(GPtrArray) actors = dt_top_sorted(&summary->processes, dt_top_by_mailbox);
    unsigned found = 0;

    for (unsigned i = 0; i < actors->len && found < dt_limits.in_flight.per_rule; i++) {
        struct dt_actor *actor = g_ptr_array_index(actors, i);

        if (actor->activity->mailbox_max < dt_limits.in_flight.messages)
            break;
        /* If no deliveries are recorded, all messages seem to be in flight. While processes were
           not traced, another process may have got the name. */
        if (actor->activity->sampled || !actor->node || !actor->node->has_receipts ||
            actor->node->was_untraced)
            continue;
        g_autofree char *name = dt_actor_show_where(actor);
        dt_find(summary, DT_RULE_in_flight,
                actor->activity->mailbox_max >= dt_limits.in_flight.huge ? DT_HIGH : DT_MEDIUM,
                actor, "%s: up to %" PRIu64 " messages in flight to it at once", name,
                actor->activity->mailbox_max);
        found++;
    }
}

void dt_find_in_queues(struct dt_summary *summary) {
    g_autoptr(GHashTable) stuck = dt_find_stuck(summary);

    sampled(summary, stuck);
    in_flight(summary);
}
