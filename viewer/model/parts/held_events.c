#include "model/parts/held_events.h"

void dt_hold(struct process *p, int64_t time, const char *text, const char *class,
             held_ends *ends) {
    struct held *held;

    dt_release(p);
    held = g_new0(struct held, 1);
    held->time = time;
    held->text = g_strdup(text);
    held->class = g_strdup(class);
    held->ends = ends;
    p->held = held;
    dt_process_ref(p);
    held->link = g_list_alloc();
    held->link->data = p;
    g_queue_push_tail_link(p->node->held, held->link);
}

static struct held *take(struct process *p) {
    struct held *held = p->held;

    if (held) {
        p->held = NULL;
        g_queue_delete_link(p->node->held, held->link);
    }
    return held;
}

static void free_held(struct process *p, struct held *held) {
    g_free(held->text);
    g_free(held->class);
    g_free(held);
    dt_process_unref(p);
}

bool dt_unhold(struct process *p, const char *text, held_ends *ends, int64_t *time) {
    struct held *held = p->held;

    if (!held || held->ends != ends || !g_str_equal(held->text, text))
        return false;
    *time = held->time;
    free_held(p, take(p));
    return true;
}

void dt_release(struct process *p) {
    struct held *held = take(p);

    if (!held)
        return;
    held->ends(p, held);
    free_held(p, held);
}

void dt_held_late(struct node *node, int64_t now) {
    GQueue *all = node->held;
    struct process *p;

    while ((p = g_queue_peek_head(all)) && p->held->time < now - DT_ONE_CALLBACK_NS)
        dt_release(p);
}

void dt_held_end(struct node *node) {
    dt_held_late(node, INT64_MAX);
}

void dt_held_new(struct node *node) {
    node->held = g_queue_new();
}

void dt_held_free(struct node *node) {
    g_queue_free(node->held);
}
