#include "viewer/html_kept.h"

#include <string.h>

enum { TEXT_MOST = 240 };

void dt_kept_init(struct dt_kept *kept, unsigned most) {
    kept->of = g_array_new(FALSE, FALSE, sizeof(struct dt_kept_one));
    kept->most = most;
    kept->seen = 0;
}

static void release(GArray *of, unsigned from) {
    for (unsigned n = from; n < of->len; n++) {
        struct dt_kept_one *one = &g_array_index(of, struct dt_kept_one, n);

        dt_lane_unref(one->process);
        dt_lane_unref(one->other);
        g_free(one->name);
        g_free(one->text);
    }
    g_array_set_size(of, from);
}

void dt_kept_clear(struct dt_kept *kept) {
    if (!kept->of)
        return;
    release(kept->of, 0);
    g_array_free(kept->of, TRUE);
    kept->of = NULL;
}

static int by_weight(const void *a, const void *b) {
    const struct dt_kept_one *one = a, *other = b;

    return (one->weight < other->weight) - (one->weight > other->weight);
}

static int by_begin(const void *a, const void *b) {
    const struct dt_kept_one *one = a, *other = b;

    return (one->begin > other->begin) - (one->begin < other->begin);
}

static void limit(struct dt_kept *kept) {
    g_array_sort(kept->of, by_weight);
    if (kept->of->len > kept->most)
        release(kept->of, kept->most);
}

void dt_kept_add(struct dt_kept *kept, const struct dt_kept_one *one) {
    struct dt_kept_one copy = *one;

    kept->seen++;
    if (kept->most == 0)
        return;
    dt_lane_ref(copy.process);
    dt_lane_ref(copy.other);
    copy.name = dt_kept_text(one->name, TEXT_MOST);
    copy.text = dt_kept_text(one->text, TEXT_MOST);
    g_array_append_val(kept->of, copy);
    if (kept->of->len >= 2 * kept->most)
        limit(kept);
}

void dt_kept_sort(struct dt_kept *kept) {
    limit(kept);
    g_array_sort(kept->of, by_begin);
}

char *dt_kept_text(const char *text, size_t most) {
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
