#include "model/entities/links.h"

#include <stdlib.h>

#include "shared/texts.h"

int dt_by_number(const void *a, const void *b) {
    const struct dt_process *p = *(struct dt_process *const *)a;
    const struct dt_process *q = *(struct dt_process *const *)b;

    return dt_compare((int64_t)p->number, (int64_t)q->number);
}

static void add_link(struct process *p, struct process *other) {
    if (!p->links)
        p->links = g_hash_table_new(NULL, NULL);
    g_hash_table_add(p->links, other);
}

void dt_link(struct process *p, struct process *other) {
    add_link(p, other);
    add_link(other, p);
}

void dt_unlink(struct process *p, struct process *other) {
    if (p->links)
        g_hash_table_remove(p->links, other);
    if (other->links)
        g_hash_table_remove(other->links, p);
}

void dt_unlink_all(struct process *p) {
    GHashTableIter i;
    void *other;

    if (!p->links)
        return;
    g_hash_table_iter_init(&i, p->links);
    while (g_hash_table_iter_next(&i, &other, NULL))
        g_hash_table_remove(((struct process *)other)->links, p);
    g_clear_pointer(&p->links, g_hash_table_destroy);
}

struct dt_process **dt_linked(const struct process *p, unsigned *count) {
    struct dt_process **linked = NULL;

    *count = 0;
    if (p->links)
        linked = (struct dt_process **)g_hash_table_get_keys_as_array(p->links, count);
    if (*count)
        qsort(linked, *count, sizeof(struct dt_process *), dt_by_number);
    return linked;
}
