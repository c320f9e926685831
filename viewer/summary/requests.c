#include "summary/requests.h"

#include <string.h>

#include "shared/arrays.h"
#include "shared/texts.h"

enum {
    /* Labels of seq_trace, and distinct processes per label, at most. */
    LABELS = 1000,
    PROCESSES = 1000,
};

static void request_free(void *row) {
    struct dt_request *request = row;

    g_free(request->label);
    g_hash_table_destroy(request->processes);
    g_ptr_array_free(request->nodes, true);
    g_free(request);
}

void dt_requests_init(struct dt_requests *requests) {
    requests->rows = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, request_free);
}

void dt_requests_free(struct dt_requests *requests) {
    g_hash_table_destroy(requests->rows);
}

/* NULL: the table is full. */
static struct dt_request *row_of(struct dt_requests *requests, const char *label) {
    struct dt_request *request = g_hash_table_lookup(requests->rows, label);

    if (request || g_hash_table_size(requests->rows) >= LABELS)
        return request;
    request = g_new0(struct dt_request, 1);
    request->label = g_strdup(label);
    request->processes = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    request->nodes = g_ptr_array_new();
    request->begin = INT64_MAX;
    request->end = INT64_MIN;
    g_hash_table_insert(requests->rows, request->label, request);
    return request;
}

static void add_process(struct dt_actors *actors, struct dt_request *request,
                        const struct dt_process *process) {
    if (!process)
        return;
    struct dt_seen_node *node = dt_seen_node(&actors->nodes, process->node);
    if (!g_ptr_array_find(request->nodes, node, NULL))
        g_ptr_array_add(request->nodes, node);
    if (g_hash_table_size(request->processes) < PROCESSES)
        g_hash_table_add(request->processes, g_memdup2(&process->number, sizeof process->number));
}

static void add_time(struct dt_request *request, int64_t time) {
    if (time == DT_NO_VALUE)
        return;
    request->begin = MIN(request->begin, time);
    request->end = MAX(request->end, time);
}

void dt_requests_add(struct dt_requests *requests, struct dt_actors *actors,
                     const struct dt_message *m) {
    struct dt_request *request = *m->label ? row_of(requests, m->label) : NULL;

    if (!request) {
        requests->left_out += *m->label != 0;
        return;
    }
    request->messages++;
    request->between_nodes += m->from && m->to && m->from->node != m->to->node;
    add_process(actors, request, m->from);
    add_process(actors, request, m->to);
    add_time(request, m->sent);
    add_time(request, m->delivered);
}

static int by_begin(const void *a, const void *b) {
    const struct dt_request *x = *(struct dt_request *const *)a;
    const struct dt_request *y = *(struct dt_request *const *)b;
    int by = dt_compare(x->begin, y->begin);

    return by ? by : strcmp(x->label, y->label);
}

GPtrArray *dt_requests_by_begin(const struct dt_requests *requests) {
    GPtrArray *rows = dt_rows_of(requests->rows);

    g_ptr_array_sort(rows, by_begin);
    return rows;
}
