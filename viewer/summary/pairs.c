#include "summary/pairs.h"

#include <string.h>

#include "shared/arrays.h"
#include "shared/elixir.h"
#include "shared/texts.h"

static unsigned pair_hash(const void *row) {
    const struct dt_pair *pair = row;
    unsigned hash = g_direct_hash(pair->from) * 31 + g_direct_hash(pair->to);

    return pair->text ? hash * 31 + g_str_hash(pair->text) : hash;
}

static gboolean pair_equal(const void *a, const void *b) {
    const struct dt_pair *x = a, *y = b;

    return x->from == y->from && x->to == y->to && g_strcmp0(x->text, y->text) == 0;
}

static void pair_free(void *row) {
    struct dt_pair *pair = row;

    dt_actor_drop(pair->from);
    dt_actor_drop(pair->to);
    dt_actor_drop(pair->only);
    g_free(pair->text);
    g_free(pair->example);
    dt_quantiles_clear(&pair->took);
    dt_quantiles_clear(&pair->queued);
    dt_quantiles_clear(&pair->runnable);
    dt_quantiles_clear(&pair->deferred);
    dt_quantiles_clear(&pair->worked);
    g_free(pair);
}

/* At the end it is known of each node. */
char *dt_pair_term(const struct dt_pair *pair, const char *term) {
    const struct dt_actor *known = pair->from ? pair->from : pair->to;

    if (!term || !known || !known->node || !known->node->is_elixir)
        return g_strdup(term ? term : "");
    GString *to = g_string_new(NULL);
    dt_elixir_term(to, term);
    return g_string_free(to, false);
}

void dt_pairs_init(struct dt_pairs *pairs, unsigned most) {
    pairs->rows = g_hash_table_new_full(pair_hash, pair_equal, NULL, pair_free);
    pairs->most = most;
}

void dt_pairs_free(struct dt_pairs *pairs) {
    g_hash_table_destroy(pairs->rows);
}

static struct dt_pair *row_of(struct dt_pairs *pairs, struct dt_actor *from, struct dt_actor *to,
                              const char *text, bool *is_new) {
    struct dt_pair key = {.from = from, .to = to, .text = (char *)text};
    struct dt_pair *pair = g_hash_table_lookup(pairs->rows, &key);

    *is_new = !pair;
    if (pair)
        return pair;
    pair = g_new0(struct dt_pair, 1);
    pair->from = dt_actor_keep(from);
    pair->to = dt_actor_keep(to);
    pair->text = g_strdup(text);
    g_hash_table_add(pairs->rows, pair);
    return pair;
}

static void merge_only(struct dt_pair *to, const struct dt_pair *from) {
    struct dt_actor *only =
        from->only || !from->from || from->from->is_sum ? from->only : from->from;

    if (!to->from || !to->from->is_sum)
        return;
    if (to->count == 0)
        to->only = dt_actor_keep(only);
    else if (to->only != only)
        dt_actor_drop(g_steal_pointer(&to->only));
}

static void merge(struct dt_pair *to, const struct dt_pair *from) {
    merge_only(to, from);
    to->count += from->count;
    to->inferred += from->inferred;
    to->timeouts += from->timeouts;
    to->refused += from->refused;
    to->downs += from->downs;
    if (!to->example)
        to->example = g_strdup(from->example);
    dt_quantiles_merge(&to->took, &from->took);
    dt_quantiles_merge(&to->queued, &from->queued);
    dt_quantiles_merge(&to->runnable, &from->runnable);
    dt_quantiles_merge(&to->deferred, &from->deferred);
    dt_quantiles_merge(&to->worked, &from->worked);
    dt_slices_merge(&to->slices, &from->slices);
}

static int64_t number_of(const struct dt_actor *actor) {
    return actor ? (int64_t)actor->number : 0;
}

/* The further criteria make the order deterministic. */
static int by_count(const void *a, const void *b) {
    const struct dt_pair *x = *(struct dt_pair *const *)a, *y = *(struct dt_pair *const *)b;
    int by = dt_compare((int64_t)y->count, (int64_t)x->count);

    by = by ? by : dt_compare(number_of(x->from), number_of(y->from));
    by = by ? by : dt_compare(number_of(x->to), number_of(y->to));
    by = by ? by : g_strcmp0(x->text, y->text);
    by = by ? by : strcmp(dt_actor_show(x->from), dt_actor_show(y->from));
    return by ? by : strcmp(dt_actor_show(x->to), dt_actor_show(y->to));
}

GPtrArray *dt_pairs_by_count(const struct dt_pairs *pairs) {
    GPtrArray *rows = dt_rows_of(pairs->rows);

    g_ptr_array_sort(rows, by_count);
    return rows;
}

static bool has_exited(const struct dt_actor *actor, const void *data) {
    (void)data;
    return actor && !actor->is_sum && !actor->process;
}

static bool has_no_name(const struct dt_actor *actor, const void *data) {
    (void)data;
    return actor && !actor->is_sum && !(actor->process ? *actor->process->name : *actor->name);
}

/* Sums the rows of processes for which a function is true by their initial calls. */
static void sum_up(struct dt_pairs *pairs, dt_is_summed *is_from, dt_is_summed *is_to,
                   const void *data) {
    g_autoptr(GPtrArray) rows = dt_rows_of(pairs->rows);
    unsigned summed = 0;

    for (unsigned i = 0; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);

        if (is_from(row->from, data) || is_to(row->to, data))
            g_ptr_array_index(rows, summed++) = row;
    }
    g_ptr_array_set_size(rows, (int)summed);
    g_ptr_array_sort(rows, by_count);
    for (unsigned i = 0; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);

        g_hash_table_steal(pairs->rows, row);
        struct dt_actor *from = is_from(row->from, data) ? dt_actor_kind(row->from) : row->from;
        struct dt_actor *to = is_to(row->to, data) ? dt_actor_kind(row->to) : row->to;
        bool is_new;
        merge(row_of(pairs, from, to, row->text, &is_new), row);
        pair_free(row);
    }
}

void dt_pairs_sum(struct dt_pairs *pairs, dt_is_summed *is_summed, const void *data) {
    sum_up(pairs, has_no_name, is_summed, data);
}

static struct dt_actor *named_receiver(struct dt_actor *actor) {
    if (!actor || actor->is_sum || has_no_name(actor, NULL))
        return dt_actor_kind(actor);
    return dt_actor_sum(actor->actors, actor->node,
                        actor->process ? actor->process->name : actor->name);
}

void dt_pairs_add_receivers(struct dt_pairs *to, const struct dt_pairs *from) {
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(from);

    for (unsigned i = 0; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);
        bool is_new;

        merge(row_of(to, NULL, named_receiver(row->to), row->text, &is_new), row);
    }
}

static void make_room(struct dt_pairs *pairs) {
    unsigned enough = pairs->most / 2;

    sum_up(pairs, has_exited, has_exited, NULL);
    if (g_hash_table_size(pairs->rows) > enough)
        sum_up(pairs, has_no_name, has_no_name, NULL);
    if (g_hash_table_size(pairs->rows) <= enough)
        return;
    g_autoptr(GPtrArray) rows = dt_pairs_by_count(pairs);
    for (unsigned i = enough; i < rows->len; i++) {
        struct dt_pair *row = g_ptr_array_index(rows, i);

        pairs->left_out += row->count;
        g_hash_table_remove(pairs->rows, row);
    }
}

struct dt_pair *dt_pairs_row(struct dt_pairs *pairs, struct dt_actor *from, struct dt_actor *to,
                             const char *text) {
    bool is_new;
    struct dt_pair *row = row_of(pairs, from, to, text, &is_new);

    if (!is_new || g_hash_table_size(pairs->rows) <= pairs->most)
        return row;
    g_hash_table_remove(pairs->rows, row);
    make_room(pairs);
    return row_of(pairs, from, to, text, &is_new);
}
