#include "summary/activity.h"

void dt_sampled_free(struct dt_sampled *sampled) {
    if (!sampled)
        return;
    if (sampled->walk) {
        g_free(sampled->walk->in);
        g_free(sampled->walk->longest_in);
        g_free(sampled->walk);
    }
    g_free(sampled->last_in);
    g_free(sampled->native);
    g_free(sampled);
}

struct dt_activity *dt_activity_new(void) {
    struct dt_activity *activity = g_new0(struct dt_activity, 1);

    activity->longest_wait_at = DT_NO_VALUE;
    return activity;
}

void dt_activity_free(struct dt_activity *activity) {
    if (activity->stack)
        g_array_free(activity->stack, true);
    g_clear_pointer(&activity->span_parts, g_array_unref);
    dt_sampled_free(activity->sampled);
    g_free(activity->heap);
    g_free(activity->formatting);
    g_free(activity->arrival);
    g_free(activity);
}

int64_t dt_activity_number(const struct dt_actor *actor, enum dt_recorded_kind kind,
                           uint64_t number) {
    bool is_recorded =
        actor->node && actor->activity->is_traced && dt_is_recorded(actor->node->recorded, kind);

    return is_recorded ? (int64_t)number : DT_NO_VALUE;
}

int64_t dt_activity_ns(const struct dt_actor *actor, int64_t ns) {
    return actor->activity->ran ? ns : DT_NO_VALUE;
}

int64_t dt_activity_collecting(const struct dt_actor *actor) {
    return dt_activity_number(actor, DT_RECORDED_COLLECTIONS,
                              (uint64_t)actor->activity->collecting);
}

int64_t dt_activity_mailbox_max(const struct dt_actor *actor) {
    bool has_sends = dt_activity_number(actor, DT_RECORDED_SENDS, 0) != DT_NO_VALUE;

    return has_sends && actor->node->has_receipts ? (int64_t)actor->activity->mailbox_max
                                                  : DT_NO_VALUE;
}

int64_t dt_activity_queue_max(const struct dt_actor *actor) {
    return actor->activity->sampled ? (int64_t)actor->activity->sampled->max_queue : DT_NO_VALUE;
}

int64_t dt_activity_memory_max(const struct dt_actor *actor) {
    return actor->activity->sampled ? (int64_t)actor->activity->sampled->max_memory : DT_NO_VALUE;
}
