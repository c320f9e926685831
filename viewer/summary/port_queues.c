#include "summary/port_queues.h"

#include "shared/arrays.h"
#include "shared/texts.h"

/* Ports, at most. Further ones are ignored. */
enum { MOST = 1024 };

/* The longest time between two samples in a row. A port without data has none. */
#define GAP_NS INT64_C(2500000000)

static void port_free(void *data) {
    struct dt_port_queue *queue = data;

    dt_actor_drop(queue->port);
    g_free(queue);
}

void dt_port_queues_init(struct dt_port_queues *queues) {
    queues->rows = g_hash_table_new_full(NULL, NULL, NULL, port_free);
}

void dt_port_queues_free(struct dt_port_queues *queues) {
    g_hash_table_destroy(queues->rows);
}

/* NULL: there are too many. */
static struct dt_port_queue *queue_of(struct dt_port_queues *queues, struct dt_actor *port) {
    struct dt_port_queue *queue = g_hash_table_lookup(queues->rows, port);

    if (queue || g_hash_table_size(queues->rows) >= MOST)
        return queue;
    queue = g_new(struct dt_port_queue, 1);
    *queue = (struct dt_port_queue){
        .port = dt_actor_keep(port), .since = DT_NO_VALUE, .last = DT_NO_VALUE};
    g_hash_table_insert(queues->rows, port, queue);
    return queue;
}

void dt_port_queues_add(struct dt_port_queues *queues, struct dt_actor *port,
                        const struct dt_port_sample *sample, int64_t time) {
    struct dt_port_queue *queue = queue_of(queues, port);

    if (!queue)
        return;
    if (sample->sent)
        queue->since = DT_NO_VALUE;
    else if (queue->since == DT_NO_VALUE || time - queue->last > GAP_NS)
        queue->since = time;
    queue->queue = sample->queue;
    queue->last = time;
}

static int longest_first(const void *a, const void *b) {
    const struct dt_port_queue *x = *(struct dt_port_queue *const *)a;
    const struct dt_port_queue *y = *(struct dt_port_queue *const *)b;

    if (x->queue != y->queue)
        return x->queue < y->queue ? 1 : -1;
    return dt_compare((int64_t)x->port->number, (int64_t)y->port->number);
}

GPtrArray *dt_port_queues_by_length(const struct dt_port_queues *queues) {
    GPtrArray *rows = dt_rows_of(queues->rows);

    g_ptr_array_sort(rows, longest_first);
    return rows;
}
