#include "page/items.h"

#include "shared/texts.h"

enum { TEXT_MOST = 240 };

void dt_page_items_init(struct dt_page_items *items, unsigned most) {
    items->of = g_array_new(false, false, sizeof(struct dt_page_item));
    items->most = most;
    items->seen = 0;
}

static void release(GArray *of, unsigned from) {
    for (unsigned n = from; n < of->len; n++) {
        struct dt_page_item *one = &g_array_index(of, struct dt_page_item, n);

        dt_page_lane_unref(one->process);
        dt_page_lane_unref(one->other);
        g_free(one->name);
        g_free(one->text);
    }
    g_array_set_size(of, from);
}

void dt_page_items_clear(struct dt_page_items *items) {
    if (!items->of)
        return;
    release(items->of, 0);
    g_array_free(items->of, true);
    items->of = NULL;
}

static int by_weight(const void *a, const void *b) {
    const struct dt_page_item *one = a, *other = b;

    return dt_compare(other->weight, one->weight);
}

static int by_begin(const void *a, const void *b) {
    const struct dt_page_item *one = a, *other = b;

    return dt_compare(one->begin, other->begin);
}

static void limit(struct dt_page_items *items) {
    g_array_sort(items->of, by_weight);
    if (items->of->len > items->most)
        release(items->of, items->most);
}

void dt_page_items_add(struct dt_page_items *items, const struct dt_page_item *one) {
    struct dt_page_item *copy;

    items->seen++;
    g_array_append_vals(items->of, one, 1);
    copy = &g_array_index(items->of, struct dt_page_item, items->of->len - 1);
    dt_page_lane_ref(copy->process);
    dt_page_lane_ref(copy->other);
    copy->name = dt_cut(one->name, TEXT_MOST, "…");
    copy->text = dt_cut(one->text, TEXT_MOST, "…");
    if (items->of->len >= 2 * items->most)
        limit(items);
    /* The array owns the texts. */
    /* cppcheck-suppress memleak */
}

void dt_page_items_sort(struct dt_page_items *items) {
    limit(items);
    g_array_sort(items->of, by_begin);
}
