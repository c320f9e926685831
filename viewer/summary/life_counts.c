#include "summary/life_counts.h"

#include <string.h>

#include "summary/findings/limits.h"

/* Rows, at most. When the table is full, rows of a single life are removed. */
enum { MOST = 4096 };

static unsigned row_hash(const void *of) {
    const struct dt_lives_row *row = of;

    return g_direct_hash(row->parent) * 31 + g_str_hash(row->what) + row->kind;
}

static gboolean row_equal(const void *a, const void *b) {
    const struct dt_lives_row *x = a, *y = b;

    return x->parent == y->parent && x->kind == y->kind && strcmp(x->what, y->what) == 0;
}

static void row_free(void *data) {
    struct dt_lives_row *row = data;

    dt_actor_drop(row->parent);
    dt_actor_drop(row->example);
    g_free(row->what);
    g_free(row);
}

void dt_lives_init(struct dt_lives *lives) {
    lives->rows = g_hash_table_new_full(row_hash, row_equal, NULL, row_free);
}

void dt_lives_free(struct dt_lives *lives) {
    g_hash_table_destroy(lives->rows);
}

static gboolean is_single(void *key, void *of, void *data) {
    const struct dt_lives_row *row = of;

    (void)key, (void)data;
    return row->started < 2;
}

static bool has_name(const struct dt_actor *actor) {
    return actor->is_sum || *(actor->process ? actor->process->name : actor->name);
}

/* The name of a port is its driver, then a space and details from the driver: its addresses. */
static char *what_of(const struct dt_actor *actor) {
    const char *what = *actor->name ? actor->name : actor->initial;

    return g_strndup(what, actor->kind == DT_PORT ? strcspn(what, " ") : strlen(what));
}

/* The result borrows the parent. */
static struct dt_lives_row key_of(const struct dt_actor *actor) {
    bool is_summed = actor->parent && !has_name(actor->parent);

    return (struct dt_lives_row){.parent = is_summed ? dt_actor_kind(actor->parent) : actor->parent,
                                 .kind = actor->kind,
                                 .what = what_of(actor),
                                 .first_crash = DT_NO_VALUE,
                                 .last_start = DT_NO_VALUE};
}

const struct dt_lives_row *dt_lives_of(const struct dt_lives *lives, const struct dt_actor *actor) {
    struct dt_lives_row key = key_of(actor), *row = g_hash_table_lookup(lives->rows, &key);

    g_free(key.what);
    return row;
}

/* NULL: the table is full. */
static struct dt_lives_row *row_of(struct dt_lives *lives, const struct dt_actor *actor) {
    struct dt_lives_row key = key_of(actor), *row = g_hash_table_lookup(lives->rows, &key);
    g_autofree char *what = key.what;

    if (row)
        return row;
    if (g_hash_table_size(lives->rows) >= MOST)
        g_hash_table_foreach_remove(lives->rows, is_single, NULL);
    if (g_hash_table_size(lives->rows) >= MOST)
        return NULL;
    row = g_memdup2(&key, sizeof key);
    row->what = g_steal_pointer(&what);
    dt_actor_keep(row->parent);
    g_hash_table_add(lives->rows, row);
    return row;
}

static bool is_short(const struct dt_actor *actor) {
    int64_t life =
        actor->kind == DT_PORT ? dt_limits.short_connections.life : dt_limits.short_lives.life;

    return actor->ended != DT_NO_VALUE && actor->ended - actor->began <= life;
}

/* The process or port with the highest rank is the example: one that crashed; a port that is open,
   if possible with a known peer. */
static int example_rank(const struct dt_actor *actor) {
    if (actor->kind == DT_PORT)
        return 2 * (actor->ended == DT_NO_VALUE) + (strstr(actor->name, " <-> ") != NULL);
    return actor->activity->has_crashed;
}

void dt_lives_add(struct dt_lives *lives, struct dt_actor *actor) {
    struct dt_lives_row *row = row_of(lives, actor);

    if (!row)
        return;
    if (actor->activity->has_crashed && row->crashed++ == 0)
        row->first_crash = actor->ended;
    if (!row->example || example_rank(actor) >= example_rank(row->example)) {
        dt_actor_drop(row->example);
        row->example = dt_actor_keep(actor);
    }
    (*(actor->ended == DT_NO_VALUE ? &row->alive : &row->ended))++;
    if (actor->began == DT_NO_VALUE)
        return;
    row->started++;
    row->restarted += row->crashed > 0 && actor->began >= row->first_crash;
    row->last_start = MAX(row->last_start, actor->began);
    row->short_ones += is_short(actor);
}
