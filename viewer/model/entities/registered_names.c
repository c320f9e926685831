#include "model/entities/registered_names.h"

/* The maximum number of free names; beyond it, all are forgotten. */
enum { FREE_NAMES_MAX = 100000 };

struct names {
    GHashTable *processes;  /* registered name -> process */
    GHashTable *free_names; /* free names: unregistered, and not registered again */
};

void dt_name_drop(struct process *p) {
    if (p->registered)
        g_hash_table_remove(p->node->names->processes, g_steal_pointer(&p->registered));
}

void dt_name_give(struct process *p, const char *name) {
    const struct names *names = p->node->names;
    struct process *former = g_hash_table_lookup(names->processes, name);
    char *key;

    if (former == p)
        return;
    if (former)
        dt_name_drop(former);
    dt_name_drop(p);
    p->registered = key = g_strdup(name);
    g_hash_table_insert(names->processes, key, p);
}

void dt_name_register(struct process *p, const char *name) {
    g_hash_table_remove(p->node->names->free_names, name);
    dt_name_give(p, name);
}

void dt_name_unregister(struct node *node, const char *name) {
    const struct names *names = node->names;
    struct process *former = g_hash_table_lookup(names->processes, name);

    if (former)
        dt_name_drop(former);
    if (g_hash_table_size(names->free_names) >= FREE_NAMES_MAX)
        g_hash_table_remove_all(names->free_names);
    g_hash_table_add(names->free_names, g_strdup(name));
}

struct process *dt_process_named(struct node *node, const char *name) {
    return g_hash_table_lookup(node->names->processes, name);
}

bool dt_name_is_free(const struct node *node, const char *name) {
    return g_hash_table_contains(node->names->free_names, name);
}

void dt_names_lost(struct node *node, int64_t begin) {
    (void)begin;
    g_hash_table_remove_all(node->names->free_names);
}

void dt_registered_new(struct node *node) {
    node->names = g_new(struct names, 1);
    node->names->processes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    node->names->free_names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void dt_registered_free(struct node *node) {
    g_hash_table_destroy(node->names->processes);
    g_hash_table_destroy(node->names->free_names);
    g_free(node->names);
}
