#include "viewer/html_moments.h"

#include <string.h>

enum { TEXT_MOST = 240 };

void dt_moments_init(struct dt_moments *moments, unsigned most) {
    moments->of = g_array_new(FALSE, FALSE, sizeof(struct dt_moment));
    moments->most = most;
    moments->seen = 0;
}

static void release(GArray *of, unsigned from) {
    for (unsigned n = from; n < of->len; n++) {
        struct dt_moment *one = &g_array_index(of, struct dt_moment, n);

        dt_lane_unref(one->process);
        dt_lane_unref(one->other);
        g_free(one->name);
        g_free(one->text);
    }
    g_array_set_size(of, from);
}

void dt_moments_clear(struct dt_moments *moments) {
    if (!moments->of)
        return;
    release(moments->of, 0);
    g_array_free(moments->of, TRUE);
    moments->of = NULL;
}

static int by_weight(const void *a, const void *b) {
    const struct dt_moment *one = a, *other = b;

    return (one->weight < other->weight) - (one->weight > other->weight);
}

static int by_begin(const void *a, const void *b) {
    const struct dt_moment *one = a, *other = b;

    return (one->begin > other->begin) - (one->begin < other->begin);
}

static void limit(struct dt_moments *moments) {
    g_array_sort(moments->of, by_weight);
    if (moments->of->len > moments->most)
        release(moments->of, moments->most);
}

void dt_moments_add(struct dt_moments *moments, const struct dt_moment *one) {
    struct dt_moment copy = *one;

    moments->seen++;
    if (moments->most == 0)
        return;
    dt_lane_ref(copy.process);
    dt_lane_ref(copy.other);
    copy.name = dt_short_text(one->name, TEXT_MOST);
    copy.text = dt_short_text(one->text, TEXT_MOST);
    g_array_append_val(moments->of, copy);
    if (moments->of->len >= 2 * moments->most)
        limit(moments);
    /* The array has its texts. */
    /* cppcheck-suppress memleak */
}

void dt_moments_sort(struct dt_moments *moments) {
    limit(moments);
    g_array_sort(moments->of, by_begin);
}

char *dt_short_text(const char *text, size_t most) {
    const char *end;
    size_t size;

    if (!text)
        return g_strdup("");
    size = strnlen(text, most + 1);
    if (size <= most)
        return g_strdup(text);
    /* A cut within a character would leave a part of it. */
    end = text + most;
    while (end > text && ((unsigned char)*end & 0xc0) == 0x80)
        end--;
    return g_strdup_printf("%.*s…", (int)(end - text), text);
}
