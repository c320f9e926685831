#include "perfetto/kind_tracks.h"

#include "shared/process_kinds.h"

struct kind {
    const struct dt_node *node;
    uint64_t track, parent; /* track 0: too few members */
    unsigned members;
    int64_t rank; /* the sum over the members */
    char *name;   /* the name of all members; "" if they have none */
    char *initial;
    struct dt_track waiting[DT_KIND_LEAST]; /* until the track exists; they own their strings */
};

struct dt_track_kinds {
    struct dt_packets *packets;
    GHashTable *kinds; /* text -> struct kind */
};

/* Writes the waiting first members below `parent`, if `packets` is not NULL, and frees them. */
static void write_waiting(struct dt_packets *packets, struct kind *kind, uint64_t parent) {
    for (unsigned n = 0; n < MIN(kind->members, DT_KIND_LEAST); n++) {
        struct dt_track *track = &kind->waiting[n];

        if (packets) {
            track->parent = parent;
            dt_track_write(packets, track);
        }
        g_free((char *)track->name);
        g_free((char *)track->description);
        *track = (struct dt_track){0};
    }
}

static void kind_free(void *data) {
    struct kind *kind = data;

    if (!kind->track)
        write_waiting(NULL, kind, 0);
    g_free(kind->name);
    g_free(kind->initial);
    g_free(kind);
}

struct dt_track_kinds *dt_track_kinds_new(struct dt_packets *packets) {
    struct dt_track_kinds *kinds = g_new0(struct dt_track_kinds, 1);

    kinds->packets = packets;
    kinds->kinds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kind_free);
    return kinds;
}

void dt_track_kinds_free(struct dt_track_kinds *kinds) {
    g_hash_table_destroy(kinds->kinds);
    g_free(kinds);
}

static struct kind *kind_of(struct dt_track_kinds *kinds, const struct dt_process *process,
                            uint64_t parent) {
    const struct dt_node *node = process->node;
    g_autofree char *key = NULL;
    struct kind *kind;

    if (!node || !dt_is_short_lived(process, node->last - node->first))
        return NULL;
    key = dt_kind_of(process);
    kind = key ? g_hash_table_lookup(kinds->kinds, key) : NULL;
    if (kind || !key || g_hash_table_size(kinds->kinds) >= DT_KINDS_MOST)
        return kind;
    kind = g_new0(struct kind, 1);
    kind->node = node;
    kind->parent = parent;
    kind->name = g_strdup(process->name);
    kind->initial = g_strdup(process->initial);
    g_hash_table_insert(kinds->kinds, g_steal_pointer(&key), kind);
    return kind;
}

void dt_track_kinds_write(struct dt_track_kinds *kinds, const struct dt_process *process,
                          const struct dt_track *track, uint64_t *last) {
    struct kind *kind = kind_of(kinds, process, track->parent);
    struct dt_track own = *track;

    if (!kind) {
        dt_track_write(kinds->packets, track);
        return;
    }
    kind->rank += track->rank;
    if (!kind->track) {
        own.name = g_strdup(track->name);
        own.description = g_strdup(track->description);
        kind->waiting[kind->members++] = own;
        if (kind->members < DT_KIND_LEAST)
            return;
        kind->track = ++*last;
        write_waiting(kinds->packets, kind, kind->track);
        return;
    }
    kind->members++;
    own.parent = kind->track;
    dt_track_write(kinds->packets, &own);
}

static void end(struct dt_track_kinds *kinds, struct kind *kind) {
    g_autofree char *show = dt_kind_show(kind->name, kind->initial, kind->members);

    if (!kind->track) {
        write_waiting(kinds->packets, kind, kind->parent);
        kind->members = 0;
        return;
    }
    dt_track_write(kinds->packets, &(struct dt_track){.uuid = kind->track,
                                                      .parent = kind->parent,
                                                      .name = show,
                                                      .rank = kind->rank,
                                                      .is_ordered = true,
                                                      .is_alone = true});
}

void dt_track_kinds_end(struct dt_track_kinds *kinds, const struct dt_node *node) {
    GHashTableIter iter;
    void *kind;

    g_hash_table_iter_init(&iter, kinds->kinds);
    while (g_hash_table_iter_next(&iter, NULL, &kind)) {
        if (((struct kind *)kind)->node != node)
            continue;
        end(kinds, kind);
        g_hash_table_iter_remove(&iter);
    }
}
