/*
 * A process that has exited is retained for a while, so that late events, such as a message sent to
 * it, find it. A new process with the same identifier replaces it in the table at once.
 */
#include "model/entities/processes.h"

#include "model/entities/links.h"
#include "model/entities/registered_names.h"
#include "model/entities/peers.h"
#include "shared/remote_ids.h"

enum {
    /* Per node: exited processes that are not yet reported as gone. */
    EXITED_MAX = 10000,
    /* Per node: the most recently named processes of other nodes, whose exits are not recorded. */
    FOREIGN_MAX = 10000,
    /* If the spawn of a process comes this much later than its first event, it is a new process:
       the identifier is reused, and the exit of the first one was not recorded. */
    SPAWN_LATE_NS = 100 * 1000 * 1000,
};

struct processes {
    GHashTable *by_key; /* struct key -> process or port */
    GQueue exited;      /* exited, but not yet reported as gone; oldest first */
    GQueue foreign;     /* processes of other nodes; the most recently named last */
};

/* -- References --------------------------------------------------------------------- */

static void free_process(struct process *p) {
    dt_identity_leave(p);
    DT_RUN_HOOKS(p->node->world, process_free, p);
    g_free(p->held);
    g_free(p->run_state);
    g_free(p->stack);
    g_free(p->open_spans);
    g_free(p->calling);
    g_free(p->in_flight);
    g_free(p->answers);
    g_clear_pointer(&p->links, g_hash_table_destroy);
    g_free(p->pid);
    g_free(p->name);
    g_free(p->label);
    g_free(p->show);
    g_free(p->group);
    g_free(p);
}

void dt_process_ref(struct process *p) {
    p->references++;
}

static void count(struct world *world, const struct dt_process *p) {
    if (p->kind != DT_PROCESS || p->began != DT_NO_VALUE)
        return;
    world->earlier++;
    world->earlier_named += *p->name || *p->initial;
}

void dt_process_unref(struct process *p) {
    if (--p->references)
        return;
    count(p->node->world, &p->seen);
    DT_EMIT(p->node->world, process_gone, &p->seen);
    free_process(p);
}

/* -- The table ---------------------------------------------------------------------- */

static struct process *insert(struct node *node, const char *pid, const struct key *key,
                              enum dt_kind kind) {
    struct process *p = g_new0(struct process, 1);
    struct world *world = node->world;

    p->key = *key;
    p->node = node;
    p->references = 1;
    p->pid = g_strdup(pid);
    p->is_known = true;
    p->seen = (struct dt_process){.kind = kind,
                                  .number = ++world->processes,
                                  .node = &node->seen,
                                  .pid = p->pid,
                                  .name = "",
                                  .initial = "",
                                  .label = "",
                                  .show = p->pid,
                                  .group = "",
                                  .began = DT_NO_VALUE,
                                  .first = world->now,
                                  .ended = DT_NO_VALUE,
                                  .since = world->now};
    g_hash_table_insert(node->processes->by_key, &p->key, p);
    DT_RUN_HOOKS(world, process_new, p);
    if (kind == DT_FOREIGN) {
        g_queue_push_tail(&node->processes->foreign, p);
        p->foreign = node->processes->foreign.tail;
    }
    return p;
}

static void forget(struct process *p) {
    if (p->is_known)
        g_hash_table_remove(p->node->processes->by_key, &p->key);
    p->is_known = false;
}

void dt_process_retire(struct process *p) {
    struct node *node = p->node;

    dt_name_drop(p);
    if (p->foreign)
        g_queue_delete_link(&node->processes->foreign, g_steal_pointer(&p->foreign));
    g_queue_push_tail(&node->processes->exited, p);
}

/* Another process has its identifier now. */
static void replace(struct process *p) {
    forget(p);
    if (p->has_exited)
        return;
    DT_RUN_HOOKS(p->node->world, leaving, p);
    DT_RUN_HOOKS(p->node->world, cut, p);
    dt_unlink_all(p);
    p->has_exited = true;
    dt_process_retire(p);
}

void dt_processes_forget(struct node *node) {
    while (node->processes->foreign.length > FOREIGN_MAX)
        replace(g_queue_peek_head(&node->processes->foreign));
    while (node->processes->exited.length > EXITED_MAX) {
        struct process *oldest = g_queue_pop_head(&node->processes->exited);

        forget(oldest);
        dt_process_unref(oldest);
    }
}

/* Marks it as the most recently named one. */
static void renew(struct process *p) {
    GQueue *all = &p->node->processes->foreign;

    if (p->foreign && p->foreign != all->tail) {
        g_queue_unlink(all, p->foreign);
        g_queue_push_tail_link(all, p->foreign);
    }
}

struct process *dt_process_of(struct node *node, const char *identifier) {
    struct key key;
    enum dt_kind kind;
    struct process *p;

    if (!dt_key_of(identifier, &key, &kind))
        return NULL;
    p = g_hash_table_lookup(node->processes->by_key, &key);
    if (!p) {
        p = insert(node, identifier, &key, kind);
        DT_EMIT(node->world, process, &p->seen, node->world->now);
    }
    renew(p);
    return p;
}

struct process *dt_process_anywhere(struct node *node, const char *identifier) {
    struct node *home = dt_is_identifier(identifier) ? dt_home(node, identifier) : NULL;
    struct process *p;
    char *there;

    if (!home || home == node)
        return dt_process_of(node, identifier);
    there = dt_remote_at_home(identifier);
    p = dt_process_of(home, there);
    g_free(there);
    return p;
}

struct process *dt_process_create(struct node *node, const char *identifier,
                                  const struct identity *identity) {
    struct key key;
    enum dt_kind kind;
    struct process *p;
    int64_t now = node->world->now;

    if (!dt_key_of(identifier, &key, &kind))
        return NULL;
    p = g_hash_table_lookup(node->processes->by_key, &key);
    if (p &&
        (p->has_exited || p->seen.began != DT_NO_VALUE || now - p->seen.first > SPAWN_LATE_NS)) {
        replace(p);
        p = NULL;
    }
    if (p) {
        p->seen.began = p->seen.first;
        if (dt_identity_learn(p, identity))
            dt_identity_emit(p);
        return p;
    }
    p = insert(node, identifier, &key, kind);
    p->seen.began = now;
    dt_identity_learn(p, identity);
    DT_EMIT(node->world, process, &p->seen, now);
    return p;
}

struct process *dt_process_again(struct process *p) {
    struct key key = p->key;
    enum dt_kind kind = p->seen.kind;
    struct node *node = p->node;
    char *pid = g_strdup(p->pid);

    replace(p);
    p = insert(node, pid, &key, kind);
    g_free(pid);
    DT_EMIT(node->world, process, &p->seen, node->world->now);
    return p;
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_processes_new(struct node *node) {
    node->processes = g_new0(struct processes, 1);
    node->processes->by_key = g_hash_table_new(dt_key_hash, dt_key_equal);
}

/* The live processes, sorted by number. */
static GPtrArray *living(struct node *node) {
    GPtrArray *all = g_ptr_array_new();
    GHashTableIter i;
    void *p;

    g_hash_table_iter_init(&i, node->processes->by_key);
    while (g_hash_table_iter_next(&i, NULL, &p))
        if (!((struct process *)p)->has_exited)
            g_ptr_array_add(all, p);
    g_ptr_array_sort(all, dt_by_number);
    return all;
}

void dt_processes_end(struct node *node) {
    GPtrArray *all = living(node);
    struct process *p;

    for (unsigned i = 0; i < all->len; i++) {
        p = all->pdata[i];
        DT_RUN_HOOKS(node->world, cut, p);
    }
    while ((p = g_queue_pop_head(&node->processes->exited))) {
        forget(p);
        dt_process_unref(p);
    }
    for (unsigned i = 0; i < all->len; i++) {
        p = all->pdata[i];
        dt_unlink_all(p);
        forget(p);
        dt_process_unref(p);
    }
    g_ptr_array_free(all, true);
}

void dt_processes_free(struct node *node) {
    g_queue_clear(&node->processes->foreign);
    g_hash_table_destroy(node->processes->by_key);
    g_free(node->processes);
}
