#include "otlp/span_trees.h"

#include <string.h>

enum {
    /* Spans that wait for a parent, with their descendants. */
    HELD_MAX = 20000,
    /* The latest roots of a process that are not within a span, among which others are searched:
       they overlap it, or are messages that were delivered late. */
    OUTSIDE_MAX = 100,
};

struct dt_held_span {
    uint64_t number, parent;
    unsigned node;
    int64_t begin, end;
    char *body;
    struct dt_labeled_request *request;
    struct dt_held_span *children, *next; /* siblings */
    /* Of a root: its links in the queue of its process, and in that of all. */
    GQueue *roots;
    GList *of_process, *by_age;
};

struct dt_span_trees {
    struct dt_otlp_writer *writer;
    GQueue by_age;      /* all roots, the oldest first */
    GHashTable *queues; /* GQueue: the roots of each process, its of_sink */
    unsigned held;
};

struct dt_span_trees *dt_span_trees_new(struct dt_otlp_writer *writer) {
    struct dt_span_trees *trees = g_new0(struct dt_span_trees, 1);

    trees->writer = writer;
    trees->queues = g_hash_table_new_full(NULL, NULL, (GDestroyNotify)g_queue_free, NULL);
    return trees;
}

/* -- Trees ---------------------------------------------------------------------------------- */

struct dt_held_span *dt_held_span(struct dt_span_trees *trees, uint64_t number,
                                  const struct dt_process *process, int64_t begin, int64_t end,
                                  GString *body) {
    struct dt_held_span *span = g_new0(struct dt_held_span, 1);

    span->number = number;
    span->node = process->node->number;
    span->begin = begin;
    span->end = end;
    span->body = g_strdup(body->str);
    trees->held++;
    return span;
}

static void free_span(struct dt_span_trees *trees, struct dt_held_span *span) {
    dt_labeled_request_unref(span->request);
    g_free(span->body);
    g_free(span);
    trees->held--;
}

void dt_held_span_label(struct dt_held_span *span, struct dt_labeled_request *request) {
    if (request && !span->request)
        span->request = dt_labeled_request_ref(request);
}

void dt_held_span_add_child(struct dt_held_span *parent, struct dt_held_span *child) {
    child->parent = parent->number;
    child->next = parent->children;
    parent->children = child;
    dt_held_span_label(parent, child->request);
}

static void unlink_root(struct dt_span_trees *trees, struct dt_held_span *root) {
    g_queue_delete_link(root->roots, root->of_process);
    g_queue_delete_link(&trees->by_age, root->by_age);
    root->roots = NULL;
}

void dt_held_span_adopt(struct dt_span_trees *trees, struct dt_held_span *parent,
                        struct dt_process *process, int64_t begin, int64_t end, int64_t slack) {
    GQueue *roots = process->of_sink;
    unsigned outside = 0;

    for (GList *link = roots ? roots->tail : NULL, *previous; link; link = previous) {
        struct dt_held_span *root = link->data;

        previous = link->prev;
        if (root->begin >= begin - slack && root->begin <= end && root->end <= end &&
            root->end >= begin) {
            unlink_root(trees, root);
            dt_held_span_add_child(parent, root);
        } else if (++outside == OUTSIDE_MAX) {
            return;
        }
    }
}

/* -- Output --------------------------------------------------------------------------------- */

/* Without recursion, because a tree may be deep. */
static void write_tree(struct dt_span_trees *trees, struct dt_held_span *root) {
    uint64_t top = root->number;
    struct dt_held_span *list = root, *last;

    unlink_root(trees, root);
    if (root->request) {
        root->parent = top = dt_labeled_request_number(root->request);
        dt_labeled_request_cover(root->request, root->begin, root->end);
    }
    while (list) {
        struct dt_held_span *span = list;

        list = span->next;
        if (span->children) {
            for (last = span->children; last->next; last = last->next)
                ;
            last->next = list;
            list = span->children;
        }
        dt_otlp_write(trees->writer, span->node,
                      (struct dt_otlp_place){span->number, span->parent, top}, span->body);
        free_span(trees, span);
    }
}

void dt_held_span_add(struct dt_span_trees *trees, struct dt_process *process,
                      struct dt_held_span *span) {
    if (!process->of_sink) {
        process->of_sink = g_queue_new();
        g_hash_table_add(trees->queues, process->of_sink);
    }
    span->roots = process->of_sink;
    g_queue_push_tail(span->roots, span);
    span->of_process = span->roots->tail;
    g_queue_push_tail(&trees->by_age, span);
    span->by_age = trees->by_age.tail;
    while (trees->held > HELD_MAX)
        write_tree(trees, g_queue_peek_head(&trees->by_age));
}

void dt_span_trees_process_gone(struct dt_span_trees *trees, struct dt_process *process) {
    GQueue *roots = process->of_sink;

    if (!roots)
        return;
    while (roots->length)
        write_tree(trees, g_queue_peek_head(roots));
    g_hash_table_remove(trees->queues, roots);
    process->of_sink = NULL;
}

/* After a failure, processes and their spans are left. */
void dt_span_trees_free(struct dt_span_trees *trees) {
    struct dt_held_span *root;

    while ((root = g_queue_peek_head(&trees->by_age)))
        write_tree(trees, root);
    g_hash_table_destroy(trees->queues);
    g_free(trees);
}
