#include "summary/activity.h"

struct dt_activity *dt_activity_new(void) {
    struct dt_activity *activity = g_new0(struct dt_activity, 1);

    activity->longest_wait_at = DT_NO_VALUE;
    return activity;
}

void dt_activity_free(struct dt_activity *activity) {
    if (activity->stack)
        g_array_free(activity->stack, true);
    g_free(activity->sampled);
    g_free(activity->heap);
    g_free(activity);
}

int64_t dt_activity_number(const struct dt_who *who, enum dt_recorded_kind kind, uint64_t number) {
    bool is_recorded =
        who->node && who->activity->is_traced && dt_is_recorded(who->node->recorded, kind);

    return is_recorded ? (int64_t)number : DT_NO_VALUE;
}

int64_t dt_activity_ns(const struct dt_who *who, enum dt_recorded_kind kind, int64_t ns) {
    if (kind == DT_RECORDED_SCHEDULING)
        return who->activity->ran ? ns : DT_NO_VALUE;
    return dt_activity_number(who, kind, (uint64_t)ns);
}

int64_t dt_activity_mailbox_max(const struct dt_who *who) {
    bool has_sends = dt_activity_number(who, DT_RECORDED_SENDS, 0) != DT_NO_VALUE;

    return has_sends && who->node->has_receipts ? (int64_t)who->activity->mailbox_max : DT_NO_VALUE;
}

int64_t dt_activity_queue_max(const struct dt_who *who) {
    return who->activity->sampled ? (int64_t)who->activity->sampled->max_queue : DT_NO_VALUE;
}

int64_t dt_activity_memory_max(const struct dt_who *who) {
    return who->activity->sampled ? (int64_t)who->activity->sampled->max_memory : DT_NO_VALUE;
}
