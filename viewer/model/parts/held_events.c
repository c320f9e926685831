#include "model/parts/held_events.h"

/* The processes of a node that hold an event, oldest first. */
static GQueue *all_of(const struct node *node) {
    return node->of[DT_PART_HELD];
}

static struct held *held_of(const struct process *p) {
    return p->of[DT_PART_HELD];
}

void dt_hold(struct process *p, int64_t time, const char *text, const char *class,
             held_ends *ends) {
    struct held *held;

    dt_release(p);
    held = g_new0(struct held, 1);
    held->time = time;
    held->text = g_strdup(text);
    held->class = g_strdup(class);
    held->ends = ends;
    p->of[DT_PART_HELD] = held;
    dt_process_ref(p);
    held->link = g_list_alloc();
    held->link->data = p;
    g_queue_push_tail_link(all_of(p->node), held->link);
}

static struct held *take(struct process *p) {
    struct held *held = held_of(p);

    if (held) {
        p->of[DT_PART_HELD] = NULL;
        g_queue_delete_link(all_of(p->node), held->link);
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
    struct held *held = held_of(p);

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
    GQueue *all = all_of(node);
    struct process *p;

    while ((p = g_queue_peek_head(all)) && held_of(p)->time < now - DT_ONE_EVENT_NS)
        dt_release(p);
}

void dt_held_end(struct node *node) {
    dt_held_late(node, INT64_MAX);
}

void dt_held_new(struct node *node) {
    node->of[DT_PART_HELD] = g_queue_new();
}

void dt_held_free(struct node *node) {
    g_queue_free(all_of(node));
}
