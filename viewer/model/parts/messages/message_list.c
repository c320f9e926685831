#include "model/parts/messages/message_list.h"

#include <string.h>

/* A list of this length gets an index, and keeps it until the list is empty. */
enum { LONG = 64 };

/* -- Chains ------------------------------------------------------------------------- */

static unsigned hash_text(const void *data) {
    return ((const struct message *)data)->hash;
}

static gboolean equal_text(const void *a, const void *b) {
    const struct message *x = a, *y = b;

    return x->hash == y->hash && x->is_remote == y->is_remote && strcmp(x->key, y->key) == 0;
}

static unsigned hash_sender(const void *data) {
    return g_direct_hash(((const struct message *)data)->seen.from);
}

static gboolean equal_sender(const void *a, const void *b) {
    const struct message *x = a, *y = b;

    return x->seen.from == y->seen.from;
}

static unsigned hash_both(const void *data) {
    return hash_text(data) ^ hash_sender(data);
}

static gboolean equal_both(const void *a, const void *b) {
    return equal_sender(a, b) && equal_text(a, b);
}

static unsigned hash_node(const void *data) {
    return hash_text(data) ^ g_direct_hash(((const struct message *)data)->sender_node);
}

static gboolean equal_node(const void *a, const void *b) {
    const struct message *x = a, *y = b;

    return x->sender_node == y->sender_node && equal_text(a, b);
}

static unsigned hash_ends(const void *data) {
    return hash_node(data) ^ hash_sender(data) << 1 ^
           g_direct_hash(((const struct message *)data)->seen.to) << 2;
}

static gboolean equal_ends(const void *a, const void *b) {
    const struct message *x = a, *y = b;

    return x->seen.to == y->seen.to && equal_sender(a, b) && equal_node(a, b);
}

static const struct {
    GHashFunc hash;
    GEqualFunc equal;
} same[DT_CHAINS] = {
    [DT_SAME_TEXT] = {hash_text, equal_text}, [DT_SAME_SENDER] = {hash_sender, equal_sender},
    [DT_SAME_BOTH] = {hash_both, equal_both}, [DT_SAME_NODE] = {hash_node, equal_node},
    [DT_SAME_ENDS] = {hash_ends, equal_ends},
};

/* The first message of each chain. */
struct index {
    GHashTable *first[DT_CHAINS];
};

static void chain(const struct index *index, enum dt_chain by, struct message *m) {
    struct message *first = g_hash_table_lookup(index->first[by], m), *last;

    m->chain[by].next = m->chain[by].previous = NULL;
    if (!first) {
        m->chain[by].last = m;
        g_hash_table_add(index->first[by], m);
        return;
    }
    last = first->chain[by].last;
    last->chain[by].next = m;
    m->chain[by].previous = last;
    first->chain[by].last = m;
}

static void unchain(const struct index *index, enum dt_chain by, struct message *m) {
    struct message *next = m->chain[by].next, *previous = m->chain[by].previous, *first;

    if (previous) {
        previous->chain[by].next = next;
        if (next) {
            next->chain[by].previous = previous;
        } else {
            first = g_hash_table_lookup(index->first[by], m);
            first->chain[by].last = previous;
        }
        return;
    }
    g_hash_table_remove(index->first[by], m);
    if (next) {
        next->chain[by].previous = NULL;
        next->chain[by].last = m->chain[by].last;
        g_hash_table_add(index->first[by], next);
    }
}

static void each_chain(const struct index *index,
                       void (*change)(const struct index *, enum dt_chain, struct message *),
                       struct message *m) {
    for (enum dt_chain by = 0; by < DT_CHAINS; by++)
        change(index, by, m);
}

static struct index *new_index(const struct list *list) {
    struct index *index = g_new(struct index, 1);

    for (enum dt_chain by = 0; by < DT_CHAINS; by++)
        index->first[by] = g_hash_table_new(same[by].hash, same[by].equal);
    for (struct message *m = list->first; m; m = m->next)
        each_chain(index, chain, m);
    return index;
}

static void free_index(struct index *index) {
    if (!index)
        return;
    for (enum dt_chain by = 0; by < DT_CHAINS; by++)
        g_hash_table_destroy(index->first[by]);
    g_free(index);
}

/* -- Lists -------------------------------------------------------------------------- */

void dt_message_list_add(struct list *list, struct message *m) {
    m->next = NULL;
    m->previous = list->last;
    *(m->previous ? &m->previous->next : &list->first) = m;
    list->last = m;
    list->length++;
    if (list->index)
        each_chain(list->index, chain, m);
    else if (list->length == LONG)
        list->index = new_index(list);
}

void dt_message_list_take_out(struct list *list, struct message *m) {
    if (list->index)
        each_chain(list->index, unchain, m);
    *(m->previous ? &m->previous->next : &list->first) = m->next;
    *(m->next ? &m->next->previous : &list->last) = m->previous;
    m->next = m->previous = NULL;
    if (--list->length == 0)
        free_index(g_steal_pointer(&list->index));
}

static enum dt_chain chain_of(const struct dt_wanted *wanted) {
    if (wanted->to)
        return DT_SAME_ENDS;
    if (wanted->from)
        return DT_SAME_BOTH;
    return wanted->node ? DT_SAME_NODE : DT_SAME_TEXT;
}

struct message *dt_message_list_find(const struct list *list, const struct dt_wanted *wanted) {
    struct message like = {.seen = {.from = wanted->from, .to = wanted->to},
                           .key = wanted->key,
                           .hash = g_str_hash(wanted->key),
                           .is_remote = wanted->is_remote,
                           .sender_node = wanted->node};
    enum dt_chain by = chain_of(wanted);
    struct message *m;

    if (list->index)
        m = g_hash_table_lookup(list->index->first[by], &like);
    else
        for (m = list->first; m && !same[by].equal(m, &like);)
            m = m->next;
    /* The following ones were sent later. */
    return m && m->seen.sent <= wanted->time ? m : NULL;
}

struct message *dt_message_list_before(const struct list *list, const struct message *m) {
    struct message *first;

    if (list->index)
        first = g_hash_table_lookup(list->index->first[DT_SAME_SENDER], m);
    else
        for (first = list->first; first && !equal_sender(first, m);)
            first = first->next;
    return first && first->seen.number < m->seen.number ? first : NULL;
}
