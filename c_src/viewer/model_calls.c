#include "viewer/model_parts.h"

const char *const dt_left_names[] = {
    [DT_LEFT_RETURN] = "return",       [DT_LEFT_EXCEPTION] = "exception",
    [DT_LEFT_TAIL_CALL] = "tail_call", [DT_LEFT_EXIT] = "exit",
    [DT_LEFT_UNKNOWN] = "unknown",
};

void dt_calls_event(struct node *node, const struct dt_recorded *event) {
    (void)node, (void)event;
}

void dt_calls_cut(struct process *p, int64_t time, enum dt_left left) {
    (void)p, (void)time, (void)left;
}

void dt_calls_lost(struct node *node, int64_t time) {
    (void)node, (void)time;
}

void dt_calls_scheduled(struct process *p, bool runs) {
    (void)p, (void)runs;
}
