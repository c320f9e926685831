#include "page/counters.h"

#include <string.h>

#include "shared/json.h"

enum {
    SAMPLES_MOST = 200,
    /* Further counters have no chart. */
    COUNTERS_MOST = 64,
    NAME_MOST = 64,
};

/* Values of one counter, or the mean of a counter over all schedulers. */
struct series {
    int64_t of[SAMPLES_MOST]; /* DT_NO_VALUE: the sample has none */
    int64_t before;           /* value of this row from earlier samples */
    int64_t sum, added;       /* of this sample */
    uint64_t sample;
};

/* The samples of one node. */
struct sampled {
    int64_t times[SAMPLES_MOST];
    unsigned rows;
    unsigned per_row; /* samples per row */
    uint64_t samples;
    char *first; /* the first counter of a sample */
    GHashTable *series;
};

struct dt_page_counters {
    GPtrArray *nodes; /* struct sampled, by node number; NULL: no samples */
};

static void sampled_free(void *data) {
    struct sampled *node = data;

    if (!node)
        return;
    g_hash_table_destroy(node->series);
    g_free(node->first);
    g_free(node);
}

struct dt_page_counters *dt_page_counters_new(void) {
    struct dt_page_counters *counters = g_new0(struct dt_page_counters, 1);

    counters->nodes = g_ptr_array_new_with_free_func(sampled_free);
    return counters;
}

void dt_page_counters_free(struct dt_page_counters *counters) {
    if (!counters)
        return;
    g_ptr_array_free(counters->nodes, true);
    g_free(counters);
}

/* -- Collecting ---------------------------------------------------------------------------- */

static struct sampled *node_of(struct dt_page_counters *counters, unsigned number,
                               const char *first) {
    struct sampled *node;

    if (number >= counters->nodes->len)
        g_ptr_array_set_size(counters->nodes, (int)number + 1);
    node = g_ptr_array_index(counters->nodes, number);
    if (node)
        return node;
    node = g_new0(struct sampled, 1);
    node->per_row = 1;
    node->first = g_strdup(first);
    node->series = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_ptr_array_index(counters->nodes, number) = node;
    return node;
}

static struct series *series_of(const struct sampled *node, const char *name) {
    struct series *series = g_hash_table_lookup(node->series, name);

    if (series || g_hash_table_size(node->series) >= COUNTERS_MOST)
        return series;
    series = g_new0(struct series, 1);
    for (unsigned n = 0; n < SAMPLES_MOST; n++)
        series->of[n] = DT_NO_VALUE;
    g_hash_table_insert(node->series, g_strdup(name), series);
    return series;
}

/* Merges pairs of rows by their maximum: for a total, which only grows, that is the later value. */
static void halve(struct sampled *node) {
    GHashTableIter iter;
    void *of;

    g_hash_table_iter_init(&iter, node->series);
    while (g_hash_table_iter_next(&iter, NULL, &of)) {
        struct series *series = of;

        for (size_t n = 0; n < SAMPLES_MOST / 2; n++)
            series->of[n] = MAX(series->of[2 * n], series->of[2 * n + 1]);
        for (unsigned n = SAMPLES_MOST / 2; n < SAMPLES_MOST; n++)
            series->of[n] = DT_NO_VALUE;
    }
    for (size_t n = 0; n < SAMPLES_MOST / 2; n++)
        node->times[n] = node->times[2 * n + 1];
    node->rows = SAMPLES_MOST / 2;
    node->per_row *= 2;
}

static void begin_sample(struct sampled *node, int64_t time) {
    if (node->samples++ % node->per_row == 0) {
        if (node->rows == SAMPLES_MOST)
            halve(node);
        node->rows++;
    }
    node->times[node->rows - 1] = time;
}

/* The length of the name without a scheduler's number: "scheduler_utilization_3" is one of many. 0:
   the counter has no chart, because it is one of several run queues and their sum is a counter. */
static size_t shared_name(const char *name) {
    size_t size = strlen(name), digits = 0;

    while (digits < size && g_ascii_isdigit(name[size - digits - 1]))
        digits++;
    if (digits == 0 || digits == size || name[size - digits - 1] != '_')
        return size;
    return g_str_has_prefix(name, "run_queue_") ? 0 : size - digits - 1;
}

static void counter(void *data, struct dt_node *of, const char *name, const char *unit,
                    int64_t value, int64_t time) {
    struct sampled *node = node_of(data, of->number, name);
    size_t size = MIN(shared_name(name), NAME_MOST);
    g_autofree char *shared = g_strndup(name, size);
    struct series *series = size > 0 ? series_of(node, shared) : NULL;
    int64_t *row;

    (void)unit;
    if (strcmp(name, node->first) == 0)
        begin_sample(node, time);
    if (!series)
        return;
    row = &series->of[node->rows - 1];
    if (series->sample != node->samples) {
        series->sample = node->samples;
        series->before = *row;
        series->sum = series->added = 0;
    }
    series->sum += value;
    series->added++;
    *row = MAX(series->before, series->sum / series->added);
}

const struct dt_sink dt_page_counters_collector = {.counter = counter};

/* -- Writing ------------------------------------------------------------------------------- */

static void series_json(const char *name, const struct series *series, unsigned rows, GString *to) {
    dt_json_open(to, name, '[');
    for (unsigned n = 0; n < rows; n++)
        dt_json_number(to, NULL, series->of[n]);
    dt_json_close(to, ']');
}

void dt_page_counters_json(const struct dt_page_counters *counters,
                           const struct dt_seen_nodes *nodes, int64_t zero, GString *to) {
    dt_json_open(to, NULL, '[');
    for (unsigned n = 0; n < counters->nodes->len; n++) {
        const struct sampled *node = g_ptr_array_index(counters->nodes, n);
        const struct dt_seen_node *seen =
            n < nodes->by_number->len ? g_ptr_array_index(nodes->by_number, n) : NULL;
        g_autoptr(GList) names = node ? g_hash_table_get_keys(node->series) : NULL;

        if (!node)
            continue;
        dt_json_open(to, NULL, '{');
        dt_json_text(to, "node", dt_seen_node_name(seen));
        dt_json_open(to, "times", '[');
        for (unsigned row = 0; row < node->rows; row++)
            dt_json_number(to, NULL, node->times[row] - zero);
        dt_json_close(to, ']');
        dt_json_open(to, "of", '{');
        names = g_list_sort(names, (GCompareFunc)strcmp);
        for (const GList *name = names; name; name = name->next)
            series_json(name->data, g_hash_table_lookup(node->series, name->data), node->rows, to);
        dt_json_close(to, '}');
        dt_json_close(to, '}');
    }
    dt_json_close(to, ']');
}
