#include "summary/named_counts.h"

#include <string.h>

#include "shared/arrays.h"

/* Rows, at most. Further names are summed in the row "others". */
enum { MOST = 8192 };

/* Kinds of parts of a row; further kinds are left out. */
enum { PARTS = 16 };

static unsigned name_hash(const void *row) {
    const struct dt_named *named = row;

    return g_direct_hash(named->node) + g_str_hash(named->name);
}

static gboolean name_equal(const void *a, const void *b) {
    const struct dt_named *x = a, *y = b;

    return x->node == y->node && strcmp(x->name, y->name) == 0;
}

static void name_free(void *row) {
    struct dt_named *named = row;

    g_free(named->name);
    g_free(named->unit);
    g_free(named->series);
    dt_quantiles_clear(&named->took);
    g_clear_pointer(&named->parts, g_array_unref);
    g_free(named);
}

void dt_names_init(struct dt_names *names) {
    names->rows = g_hash_table_new_full(name_hash, name_equal, NULL, name_free);
}

void dt_names_free(struct dt_names *names) {
    g_hash_table_destroy(names->rows);
}

static struct dt_named *find(const struct dt_names *names, const struct dt_seen_node *node,
                             const char *name) {
    struct dt_named key = {.node = (struct dt_seen_node *)node, .name = (char *)name};

    return g_hash_table_lookup(names->rows, &key);
}

const struct dt_named *dt_names_find(const struct dt_names *names, const struct dt_seen_node *node,
                                     const char *name) {
    return find(names, node, name);
}

struct dt_named *dt_names_row(struct dt_names *names, struct dt_seen_node *node, const char *name) {
    struct dt_named *named = find(names, node, name);

    if (named)
        return named;
    if (names->others)
        return names->others;
    bool is_last = g_hash_table_size(names->rows) + 1 >= MOST;
    named = g_new0(struct dt_named, 1);
    named->node = is_last ? NULL : node;
    named->name = g_strdup(is_last ? "others" : name);
    named->last = named->min = named->max = DT_NO_VALUE;
    named->full_begin = named->full_end = named->full_since = DT_NO_VALUE;
    g_hash_table_add(names->rows, named);
    if (is_last)
        names->others = named;
    return named;
}

void dt_named_add_part(struct dt_named *row, const struct dt_named *of, int64_t ns) {
    if (!row->parts)
        row->parts = g_array_new(false, false, sizeof(struct dt_part));
    for (unsigned i = 0; i < row->parts->len; i++) {
        struct dt_part *part = &g_array_index(row->parts, struct dt_part, i);

        if (part->of == of) {
            part->ns += ns;
            return;
        }
    }
    if (row->parts->len < PARTS)
        g_array_append_val(row->parts, ((struct dt_part){of, ns}));
}

const struct dt_part *dt_named_largest_part(const struct dt_named *row) {
    const struct dt_part *largest = NULL;

    for (unsigned i = 0; row->parts && i < row->parts->len; i++) {
        const struct dt_part *part = &g_array_index(row->parts, struct dt_part, i);

        if (!largest || part->ns > largest->ns)
            largest = part;
    }
    return largest;
}

GPtrArray *dt_names_sorted(const struct dt_names *names, GCompareFunc by) {
    GPtrArray *rows = dt_rows_of(names->rows);

    g_ptr_array_sort(rows, by);
    return rows;
}
