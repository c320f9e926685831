#include "page/folds.h"

#include "shared/process_kinds.h"
#include "shared/texts.h"

struct dt_page_folds {
    GHashTable *kinds; /* text -> struct dt_page_fold */
};

static void unref(void *lane) {
    dt_page_lane_unref(lane);
}

static void fold_free(void *data) {
    struct dt_page_fold *fold = data;

    dt_page_lane_unref(fold->lane);
    g_ptr_array_free(fold->unfolds, true);
    g_free(fold->name);
    g_free(fold->initial);
    g_free(fold);
}

struct dt_page_folds *dt_page_folds_new(void) {
    struct dt_page_folds *folds = g_new0(struct dt_page_folds, 1);

    folds->kinds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, fold_free);
    return folds;
}

void dt_page_folds_free(struct dt_page_folds *folds) {
    g_hash_table_destroy(folds->kinds);
    g_free(folds);
}

static struct dt_page_fold *fold_of(struct dt_page_folds *folds, const struct dt_process *process) {
    g_autofree char *kind = dt_kind_of(process);
    struct dt_page_fold *fold = kind ? g_hash_table_lookup(folds->kinds, kind) : NULL;

    if (fold || !kind || g_hash_table_size(folds->kinds) >= DT_KINDS_MOST)
        return fold;
    fold = g_new0(struct dt_page_fold, 1);
    fold->name = g_strdup(process->name);
    fold->initial = g_strdup(process->initial);
    fold->unfolds = g_ptr_array_new_with_free_func(unref);
    fold->began = process->began;
    fold->ended = process->ended;
    g_hash_table_insert(folds->kinds, g_steal_pointer(&kind), fold);
    return fold;
}

void dt_page_folds_note(struct dt_page_folds *folds, struct dt_page_lane *lane,
                        const struct dt_process *process, int64_t whole) {
    struct dt_page_fold *fold = dt_is_short_lived(process, whole) ? fold_of(folds, process) : NULL;

    if (!fold)
        return;
    fold->members++;
    fold->began = MIN(fold->began, process->began);
    fold->ended = MAX(fold->ended, process->ended);
    lane->fold = fold;
}

static int by_interest(const void *a, const void *b) {
    const struct dt_page_lane *one = *(struct dt_page_lane *const *)a,
                              *other = *(struct dt_page_lane *const *)b;

    if (one->has_crashed != other->has_crashed)
        return one->has_crashed ? -1 : 1;
    if (one->run_ns != other->run_ns)
        return dt_compare(other->run_ns, one->run_ns);
    return dt_compare((int64_t)one->actor->number, (int64_t)other->actor->number);
}

void dt_page_fold_limit(struct dt_page_fold *fold, unsigned most) {
    if (fold->unfolds->len <= most)
        return;
    g_ptr_array_sort(fold->unfolds, by_interest);
    for (unsigned n = most; n < fold->unfolds->len; n++)
        /* Messages may still refer to the lane, for its names. */
        dt_page_lane_drop_intervals(g_ptr_array_index(fold->unfolds, n));
    g_ptr_array_set_size(fold->unfolds, (int)most);
}

void dt_page_folds_apply(GPtrArray *lanes) {
    g_autoptr(GHashTable) changed = g_hash_table_new(NULL, NULL);
    GHashTableIter iter;
    void *each;
    unsigned to = 0;

    for (unsigned n = 0; n < lanes->len; n++) {
        struct dt_page_lane *lane = g_ptr_array_index(lanes, n);
        struct dt_page_fold *fold = lane->fold;

        if (!fold || fold->lane == lane || fold->members < DT_KIND_LEAST) {
            g_ptr_array_index(lanes, to++) = lane;
            continue;
        }
        if (!fold->lane) {
            fold->lane = dt_page_lane_new(lane->actor);
            fold->lane->fold = fold;
        }
        /* The fold's lane is already in the array, unless it is new or forget_dull dropped it. */
        if (fold->lane->references == 1)
            g_ptr_array_index(lanes, to++) = dt_page_lane_ref(fold->lane);
        g_hash_table_add(changed, fold);
        dt_page_lane_take(fold->lane, lane);
        g_ptr_array_add(fold->unfolds, lane);
    }
    /* These lanes have moved: set_size must not free them. */
    for (unsigned n = to; n < lanes->len; n++)
        g_ptr_array_index(lanes, n) = NULL;
    g_ptr_array_set_size(lanes, (int)to);
    g_hash_table_iter_init(&iter, changed);
    while (g_hash_table_iter_next(&iter, &each, NULL)) {
        struct dt_page_fold *fold = each;

        dt_page_lane_flatten(fold->lane);
        dt_page_fold_limit(fold, DT_PAGE_FOLD_UNFOLDS);
    }
}

size_t dt_page_fold_size(const struct dt_page_fold *fold) {
    size_t sum = 0;

    for (unsigned n = 0; n < fold->unfolds->len; n++)
        sum += dt_page_lane_size(g_ptr_array_index(fold->unfolds, n));
    return sum;
}

char *dt_page_fold_show(const struct dt_page_fold *fold) {
    return dt_kind_show(fold->name, fold->initial, fold->members);
}
