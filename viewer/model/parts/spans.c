#include "model/parts/spans.h"

#include "model/entities/processes.h"

struct span {
    struct dt_span seen;
    char *name;
    GList *link, *of_process;
};

/* The maximum number of open spans. A span without a recorded stop ends when its process exits, or
   when it is the oldest of too many. */
enum { OPEN_MAX = 100000 };

struct spans {
    GHashTable *open; /* by id */
    GQueue by_age;    /* the oldest last */
};

static void end_span(struct node *node, struct span *span, int64_t end, const char *outcome) {
    struct process *p = (struct process *)span->seen.process;
    struct spans *all = node->spans;

    span->seen.end = MAX(end, span->seen.begin);
    span->seen.outcome = outcome;
    span->seen.is_open = !*outcome;
    DT_EMIT(node->world, span, &span->seen);
    g_hash_table_remove(all->open, &span->seen.id);
    g_queue_delete_link(&all->by_age, span->link);
    g_queue_delete_link(p->open_spans, span->of_process);
    g_free(span->name);
    g_free(span);
    dt_process_unref(p);
}

static void start(struct node *node, const struct dt_user_span_start *e) {
    struct process *p = dt_process_of(node, e->pid);
    struct spans *all = node->spans;
    struct span *span;

    if (!p || p->has_exited || g_hash_table_contains(all->open, &e->id))
        return;
    span = g_new0(struct span, 1);
    span->name = g_strdup(e->name);
    span->seen = (struct dt_span){.process = &p->seen,
                                  .id = e->id,
                                  .name = span->name,
                                  .begin = node->world->now,
                                  .outcome = ""};
    dt_process_ref(p);
    g_hash_table_insert(all->open, &span->seen.id, span);
    g_queue_push_head(&all->by_age, span);
    span->link = all->by_age.head;
    if (!p->open_spans)
        p->open_spans = g_new0(GQueue, 1);
    g_queue_push_head(p->open_spans, span);
    span->of_process = p->open_spans->head;
    if (all->by_age.length > OPEN_MAX)
        end_span(node, g_queue_peek_tail(&all->by_age), node->world->now, "");
}

static void stop(struct node *node, const struct dt_user_span_stop *e) {
    struct process *p = dt_process_of(node, e->pid);
    struct span *span = g_hash_table_lookup(node->spans->open, &e->id);
    const char *outcome = *e->outcome ? e->outcome : "ok";
    int64_t now = node->world->now;
    struct dt_span report;

    if (!p)
        return;
    if (span && span->seen.process == &p->seen) {
        end_span(node, span, now, outcome);
        return;
    }
    report = (struct dt_span){.process = &p->seen,
                              .id = e->id,
                              .name = e->name,
                              .begin = now - (int64_t)MIN(e->duration, (uint64_t)MAX(now, 0)),
                              .end = now,
                              .outcome = outcome};
    DT_EMIT(node->world, span, &report);
}

void dt_spans_event(struct node *node, const struct dt_recorded *event) {
    if (event->probe == DT_user_span_start)
        start(node, &event->fields.user_span_start);
    else
        stop(node, &event->fields.user_span_stop);
}

void dt_spans_cut(struct process *p) {
    GQueue *open = p->open_spans;
    struct span *span;

    while (open && (span = g_queue_peek_head(open)))
        end_span(p->node, span, p->node->world->now, "");
}

void dt_spans_exited(struct process *p, const char *reason) {
    (void)reason;
    dt_spans_cut(p);
}

void dt_spans_new(struct node *node) {
    struct spans *all = node->spans = g_new0(struct spans, 1);

    all->open = g_hash_table_new(g_int64_hash, g_int64_equal);
}

void dt_spans_end(struct node *node) {
    struct span *span;

    while ((span = g_queue_peek_tail(&node->spans->by_age)))
        end_span(node, span, node->seen.last, "");
}

void dt_spans_free(struct node *node) {
    g_hash_table_destroy(node->spans->open);
    g_free(node->spans);
}
