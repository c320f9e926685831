#include <string.h>

#include "viewer/report_parts.h"
#include "viewer/texts.h"

/* -- Pairs ------------------------------------------------------------------------------ */

static guint pair_hash(gconstpointer row) {
    const struct dt_pair *pair = row;
    guint hash = g_direct_hash(pair->from) * 31 + g_direct_hash(pair->to);
    return pair->text ? hash * 31 + g_str_hash(pair->text) : hash;
}

static gboolean pair_equal(gconstpointer a, gconstpointer b) {
    const struct dt_pair *x = a, *y = b;
    return x->from == y->from && x->to == y->to && g_strcmp0(x->text, y->text) == 0;
}

static void pair_free(gpointer row) {
    struct dt_pair *pair = row;
    dt_who_drop(pair->from);
    dt_who_drop(pair->to);
    dt_who_drop(pair->only);
    g_free(pair->text);
    g_free(pair->example);
    dt_quantiles_clear(&pair->took);
    dt_quantiles_clear(&pair->queued);
    dt_quantiles_clear(&pair->worked);
    g_free(pair);
}

void dt_pairs_init(struct dt_pairs *pairs, unsigned most) {
    pairs->rows = g_hash_table_new_full(pair_hash, pair_equal, NULL, pair_free);
    pairs->most = most;
}

void dt_pairs_free(struct dt_pairs *pairs) {
    g_hash_table_destroy(pairs->rows);
}

static struct dt_pair *row_of(struct dt_pairs *pairs, struct dt_who *from, struct dt_who *to,
                              const char *text, bool *is_new) {
    struct dt_pair key = {.from = from, .to = to, .text = (char *)text};
    struct dt_pair *pair = g_hash_table_lookup(pairs->rows, &key);
    *is_new = !pair;
    if (pair)
        return pair;
    pair = g_new0(struct dt_pair, 1);
    pair->from = dt_who_keep(from);
    pair->to = dt_who_keep(to);
    pair->text = g_strdup(text);
    g_hash_table_add(pairs->rows, pair);
    return pair;
}

static void merge(struct dt_pair *to, struct dt_pair *from) {
    to->count += from->count;
    to->inferred += from->inferred;
    to->timeouts += from->timeouts;
    to->downs += from->downs;
    if (!to->example)
        to->example = g_steal_pointer(&from->example);
    dt_quantiles_merge(&to->took, &from->took);
    dt_quantiles_merge(&to->queued, &from->queued);
    dt_quantiles_merge(&to->worked, &from->worked);
}

static int64_t number_of(const struct dt_who *who) {
    return who ? (int64_t)who->number : 0;
}

/* The second criteria make the order the same in each run. */
static gint by_count(gconstpointer a, gconstpointer b) {
    const struct dt_pair *x = *(struct dt_pair *const *)a, *y = *(struct dt_pair *const *)b;
    int by = dt_compare((int64_t)y->count, (int64_t)x->count);
    by = by ? by : dt_compare(number_of(x->from), number_of(y->from));
    by = by ? by : dt_compare(number_of(x->to), number_of(y->to));
    by = by ? by : g_strcmp0(x->text, y->text);
    return by ? by : strcmp(dt_who_show(x->from), dt_who_show(y->from));
}

static GPtrArray *values(GHashTable *rows) {
    GPtrArray *array = g_ptr_array_sized_new(g_hash_table_size(rows));
    GHashTableIter iter;
    gpointer row;
    g_hash_table_iter_init(&iter, rows);
    while (g_hash_table_iter_next(&iter, &row, NULL))
        g_ptr_array_add(array, row);
    return array;
}

GPtrArray *dt_pairs_by_count(const struct dt_pairs *pairs) {
    GPtrArray *rows = values(pairs->rows);
    g_ptr_array_sort(rows, by_count);
    return rows;
}

typedef bool is_summed(const struct dt_who *who);

static bool has_exited(const struct dt_who *who) {
    return who && !who->is_sum && !who->process;
}

static bool has_no_name(const struct dt_who *who) {
    return who && !who->is_sum && !(who->process ? *who->process->name : *who->name);
}

/* Rows of processes that `is_summed` names become rows of their initial calls. */
static void sum_up(struct dt_report *report, struct dt_pairs *pairs, is_summed *is_summed) {
    g_autoptr(GPtrArray) rows = values(pairs->rows);
    guint summed = 0;
    for (guint i = 0; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);
        if (is_summed(row->from) || is_summed(row->to))
            g_ptr_array_index(rows, summed++) = row;
    }
    g_ptr_array_set_size(rows, (gint)summed);
    g_ptr_array_sort(rows, by_count);
    for (guint i = 0; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);
        g_hash_table_steal(pairs->rows, row);
        struct dt_who *from = is_summed(row->from) ? dt_who_kind(report, row->from) : row->from;
        struct dt_who *to = is_summed(row->to) ? dt_who_kind(report, row->to) : row->to;
        bool is_new;
        merge(row_of(pairs, from, to, row->text, &is_new), row);
        pair_free(row);
    }
}

static void make_room(struct dt_report *report, struct dt_pairs *pairs) {
    unsigned enough = pairs->most / 2;
    sum_up(report, pairs, has_exited);
    if (g_hash_table_size(pairs->rows) > enough)
        sum_up(report, pairs, has_no_name);
    if (g_hash_table_size(pairs->rows) <= enough)
        return;
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(pairs);
    for (guint i = enough; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);
        pairs->left_out += row->count;
        g_hash_table_remove(pairs->rows, row);
    }
}

struct dt_pair *dt_pairs_row(struct dt_report *report, struct dt_pairs *pairs, struct dt_who *from,
                             struct dt_who *to, const char *text) {
    bool is_new;
    struct dt_pair *row = row_of(pairs, from, to, text, &is_new);
    if (!is_new || g_hash_table_size(pairs->rows) <= pairs->most)
        return row;
    g_hash_table_remove(pairs->rows, row);
    make_room(report, pairs);
    return row_of(pairs, from, to, text, &is_new);
}

/* -- Names ------------------------------------------------------------------------------ */

static guint name_hash(gconstpointer row) {
    const struct dt_named *named = row;
    return g_direct_hash(named->node) + g_str_hash(named->name);
}

static gboolean name_equal(gconstpointer a, gconstpointer b) {
    const struct dt_named *x = a, *y = b;
    return x->node == y->node && strcmp(x->name, y->name) == 0;
}

static void name_free(gpointer row) {
    struct dt_named *named = row;
    g_free(named->name);
    g_free(named->unit);
    dt_quantiles_clear(&named->took);
    g_free(named);
}

void dt_names_init(struct dt_names *names) {
    names->rows = g_hash_table_new_full(name_hash, name_equal, NULL, name_free);
}

void dt_names_free(struct dt_names *names) {
    g_hash_table_destroy(names->rows);
}

struct dt_named *dt_names_row(struct dt_names *names, struct dt_seen_node *node, const char *name) {
    struct dt_named key = {.node = node, .name = (char *)name};
    struct dt_named *named = g_hash_table_lookup(names->rows, &key);
    if (named)
        return named;
    if (names->others)
        return names->others;
    bool is_last = g_hash_table_size(names->rows) + 1 >= DT_NAMED;
    named = g_new0(struct dt_named, 1);
    named->node = is_last ? NULL : node;
    named->name = g_strdup(is_last ? "others" : name);
    named->last = named->min = named->max = DT_NO_VALUE;
    g_hash_table_add(names->rows, named);
    if (is_last)
        names->others = named;
    return named;
}

GPtrArray *dt_names_sorted(const struct dt_names *names, GCompareFunc by) {
    GPtrArray *rows = values(names->rows);
    g_ptr_array_sort(rows, by);
    return rows;
}

/* -- Lists ------------------------------------------------------------------------------ */

static void listed_clear(gpointer row) {
    struct dt_listed *listed = row;
    dt_who_drop(listed->who);
    g_free(listed->text);
    g_free(listed->word);
    if (listed->linked)
        g_ptr_array_unref(listed->linked);
}

void dt_list_init(struct dt_list *list, bool by_ns) {
    list->rows = g_array_new(FALSE, FALSE, sizeof(struct dt_listed));
    g_array_set_clear_func(list->rows, listed_clear);
    list->by_ns = by_ns;
    list->least = -1;
}

void dt_list_free(struct dt_list *list) {
    g_array_free(list->rows, TRUE);
}

bool dt_list_wants(const struct dt_list *list, int64_t ns) {
    return list->by_ns ? ns > list->least : list->rows->len < DT_LISTED;
}

static gint by_time(gconstpointer a, gconstpointer b) {
    const struct dt_listed *x = a, *y = b;
    return dt_compare(x->time, y->time);
}

static gint by_ns(gconstpointer a, gconstpointer b) {
    const struct dt_listed *x = a, *y = b;
    int by = dt_compare(y->ns, x->ns);
    return by ? by : by_time(a, b);
}

void dt_list_sort(struct dt_list *list) {
    g_array_sort(list->rows, list->by_ns ? by_ns : by_time);
    if (list->rows->len <= DT_LISTED)
        return;
    list->least = g_array_index(list->rows, struct dt_listed, DT_LISTED - 1).ns;
    list->left_out += list->rows->len - DT_LISTED;
    g_array_set_size(list->rows, DT_LISTED);
}

void dt_list_add(struct dt_list *list, struct dt_listed row) {
    if (!dt_list_wants(list, row.ns)) {
        row.who = NULL;
        listed_clear(&row);
        list->left_out++;
        return;
    }
    dt_who_keep(row.who);
    g_array_append_val(list->rows, row);
    if (list->rows->len >= 2 * DT_LISTED)
        dt_list_sort(list);
}

GPtrArray *dt_pointers(const GArray *array) {
    GPtrArray *pointers = g_ptr_array_sized_new(array->len);
    size_t size = g_array_get_element_size((GArray *)array);
    for (guint i = 0; i < array->len; i++)
        g_ptr_array_add(pointers, array->data + i * size);
    return pointers;
}
