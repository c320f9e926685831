#include "summary/occurrences.h"

#include "shared/texts.h"

static void listed_clear(void *row) {
    struct dt_listed *listed = row;

    dt_actor_drop(listed->actor);
    g_free(listed->text);
    g_free(listed->word);
    if (listed->linked)
        g_ptr_array_unref(listed->linked);
}

void dt_list_init(struct dt_list *list, bool by_ns) {
    list->rows = g_array_new(false, false, sizeof(struct dt_listed));
    g_array_set_clear_func(list->rows, listed_clear);
    list->by_ns = by_ns;
    list->least = -1;
}

void dt_list_free(struct dt_list *list) {
    g_array_free(list->rows, true);
}

bool dt_list_wants(const struct dt_list *list, int64_t ns) {
    return list->by_ns ? ns > list->least : list->rows->len < DT_LISTED;
}

static int by_time(const void *a, const void *b) {
    const struct dt_listed *x = a, *y = b;

    return dt_compare(x->time, y->time);
}

static int by_ns(const void *a, const void *b) {
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
        row.actor = NULL;
        listed_clear(&row);
        list->left_out++;
        return;
    }
    dt_actor_keep(row.actor);
    g_array_append_val(list->rows, row);
    if (list->rows->len >= 2 * DT_LISTED)
        dt_list_sort(list);
}
