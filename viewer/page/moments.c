#include "page/moments.h"

#include "shared/texts.h"

enum { TEXT_MOST = 240 };

void dt_page_moments_init(struct dt_page_moments *moments, unsigned most) {
    moments->of = g_array_new(FALSE, FALSE, sizeof(struct dt_page_moment));
    moments->most = most;
    moments->seen = 0;
}

static void release(GArray *of, unsigned from) {
    for (unsigned n = from; n < of->len; n++) {
        struct dt_page_moment *one = &g_array_index(of, struct dt_page_moment, n);

        dt_page_lane_unref(one->process);
        dt_page_lane_unref(one->other);
        g_free(one->name);
        g_free(one->text);
    }
    g_array_set_size(of, from);
}

void dt_page_moments_clear(struct dt_page_moments *moments) {
    if (!moments->of)
        return;
    release(moments->of, 0);
    g_array_free(moments->of, TRUE);
    moments->of = NULL;
}

static int by_weight(const void *a, const void *b) {
    const struct dt_page_moment *one = a, *other = b;

    return dt_compare(other->weight, one->weight);
}

static int by_begin(const void *a, const void *b) {
    const struct dt_page_moment *one = a, *other = b;

    return dt_compare(one->begin, other->begin);
}

static void limit(struct dt_page_moments *moments) {
    g_array_sort(moments->of, by_weight);
    if (moments->of->len > moments->most)
        release(moments->of, moments->most);
}

void dt_page_moments_add(struct dt_page_moments *moments, const struct dt_page_moment *one) {
    struct dt_page_moment *copy;

    moments->seen++;
    g_array_append_vals(moments->of, one, 1);
    copy = &g_array_index(moments->of, struct dt_page_moment, moments->of->len - 1);
    dt_page_lane_ref(copy->process);
    dt_page_lane_ref(copy->other);
    copy->name = dt_cut(one->name, TEXT_MOST, "…");
    copy->text = dt_cut(one->text, TEXT_MOST, "…");
    if (moments->of->len >= 2 * moments->most)
        limit(moments);
    /* The array owns the texts. */
    /* cppcheck-suppress memleak */
}

void dt_page_moments_sort(struct dt_page_moments *moments) {
    limit(moments);
    g_array_sort(moments->of, by_begin);
}
