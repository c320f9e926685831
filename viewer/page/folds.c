#include "page/folds.h"

#include "shared/kinds.h"

struct dt_page_folds {
    GHashTable *kinds; /* text -> struct dt_page_fold */
};

static void fold_free(void *data) {
    struct dt_page_fold *fold = data;

    dt_page_lane_unref(fold->lane);
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

void dt_page_folds_apply(GPtrArray *lanes) {
    g_autoptr(GPtrArray) changed = g_ptr_array_new();
    unsigned to = 0;

    for (unsigned n = 0; n < lanes->len; n++) {
        struct dt_page_lane *lane = g_ptr_array_index(lanes, n);
        struct dt_page_fold *fold = lane->fold;

        if (!fold || fold->lane == lane || fold->members < DT_KIND_LEAST) {
            g_ptr_array_index(lanes, to++) = lane;
            continue;
        }
        if (!fold->lane) {
            fold->lane = dt_page_lane_new(lane->who);
            fold->lane->fold = fold;
        }
        /* It is in the array, unless it is new or has been too dull for it. */
        if (fold->lane->references == 1)
            g_ptr_array_index(lanes, to++) = dt_page_lane_ref(fold->lane);
        if (!g_ptr_array_find(changed, fold->lane, NULL))
            g_ptr_array_add(changed, fold->lane);
        dt_page_lane_take(fold->lane, lane);
        dt_page_lane_unref(lane);
    }
    /* The array frees what is cut off, which has been moved. */
    for (unsigned n = to; n < lanes->len; n++)
        g_ptr_array_index(lanes, n) = NULL;
    g_ptr_array_set_size(lanes, (int)to);
    for (unsigned n = 0; n < changed->len; n++)
        dt_page_lane_flatten(g_ptr_array_index(changed, n));
}

char *dt_page_fold_show(const struct dt_page_fold *fold) {
    return dt_kind_show(fold->name, fold->initial, fold->members);
}
