#include "summary/socket_owners.h"

#include "shared/texts.h"

/* Processes, at most. Further ones are ignored. */
enum { MOST = 1024 };

static void owner_free(void *data) {
    struct dt_socket_owner *row = data;

    dt_actor_drop(row->owner);
    g_free(row->example);
    g_free(row);
}

void dt_socket_owners_init(struct dt_socket_owners *owners) {
    owners->rows = g_hash_table_new_full(NULL, NULL, NULL, owner_free);
}

void dt_socket_owners_free(struct dt_socket_owners *owners) {
    g_hash_table_destroy(owners->rows);
}

void dt_socket_owners_add(struct dt_socket_owners *owners, struct dt_actor *owner,
                          const struct dt_socket_sample *sample, int64_t time) {
    struct dt_socket_owner *row = g_hash_table_lookup(owners->rows, owner);

    if (!row && g_hash_table_size(owners->rows) >= MOST)
        return;
    if (!row) {
        row = g_new0(struct dt_socket_owner, 1);
        row->owner = dt_actor_keep(owner);
        g_hash_table_insert(owners->rows, owner, row);
    }
    dt_set(&row->example, sample->name);
    dt_series_add(&row->sockets, time, (int64_t)MIN(sample->sockets, (uint64_t)INT64_MAX));
}

/* Of two that grow equally, the one with the lower number is taken, so that the result does not
   depend on the order of the table. */
static bool is_before(const struct dt_socket_owner *row, int64_t grown,
                      const struct dt_socket_owner *most, int64_t by_most) {
    return !most || grown > by_most ||
           (grown == by_most && row->owner->number < most->owner->number);
}

const struct dt_socket_owner *dt_socket_owners_growing(const struct dt_socket_owners *owners,
                                                       const struct dt_seen_node *node,
                                                       const struct dt_series_growth *of,
                                                       int64_t least) {
    const struct dt_socket_owner *most = NULL;
    int64_t by_most = 0;
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, owners->rows);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct dt_socket_owner *row = value;
        int64_t grown = dt_series_grown(&row->sockets, of);

        if (row->owner->node == node && grown >= least && is_before(row, grown, most, by_most)) {
            most = row;
            by_most = grown;
        }
    }
    return most;
}
