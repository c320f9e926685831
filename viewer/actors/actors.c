#include "actors/actors.h"

#include <string.h>

#include "shared/arrays.h"

enum {
    /* The maximum number of sums; further ones are counted as "others". */
    SUMS = 4096,
    /* Ancestors that are searched for a cycle; a longer chain is assumed to be one. */
    GENERATIONS = 1000,
};

struct dt_actor *dt_actor_keep(struct dt_actor *actor) {
    if (actor)
        actor->references++;
    return actor;
}

/* Frees it. Returns its parent, and adds its owner to the array. */
static struct dt_actor *free_actor(struct dt_actor *actor, GPtrArray **owners) {
    struct dt_actor *parent = actor->parent;

    if (actor->owner && !*owners)
        *owners = g_ptr_array_new();
    if (actor->owner)
        g_ptr_array_add(*owners, actor->owner);
    g_free(actor->texts);
    actor->actors->free_activity(actor->activity);
    g_free(actor);
    return parent;
}

/* Drops ancestors and owners in a loop, because recursion could be deep. */
void dt_actor_drop(struct dt_actor *actor) {
    g_autoptr(GPtrArray) owners = NULL;

    while (actor) {
        while (actor && --actor->references == 0)
            actor = free_actor(actor, &owners);
        actor =
            owners && owners->len ? g_ptr_array_steal_index_fast(owners, owners->len - 1) : NULL;
    }
}

static unsigned sum_hash(const void *of) {
    const struct dt_actor *sum = of;

    return g_direct_hash(sum->node) ^ g_str_hash(sum->show);
}

static gboolean sum_equal(const void *a, const void *b) {
    const struct dt_actor *x = a, *y = b;

    return x->node == y->node && strcmp(x->show, y->show) == 0;
}

static void drop_actor(void *actor) {
    dt_actor_drop(actor);
}

void dt_actors_init(struct dt_actors *actors, struct dt_activity *(*new_activity)(void),
                    void (*free_activity)(struct dt_activity *)) {
    actors->new_activity = new_activity;
    actors->free_activity = free_activity;
    dt_seen_nodes_init(&actors->nodes);
    actors->alive = g_hash_table_new_full(NULL, NULL, drop_actor, NULL);
    actors->sums = g_hash_table_new_full(sum_hash, sum_equal, drop_actor, NULL);
}

void dt_actors_free(struct dt_actors *actors) {
    g_hash_table_destroy(actors->alive);
    g_hash_table_destroy(actors->sums);
    dt_seen_nodes_free(&actors->nodes);
}

static struct dt_actor *new_actor(struct dt_actors *actors, struct dt_seen_node *node) {
    struct dt_actor *actor = g_new0(struct dt_actor, 1);

    actor->references = 1;
    actor->actors = actors;
    actor->node = node;
    actor->began = actor->ended = DT_NO_VALUE;
    actor->activity = actors->new_activity();
    return actor;
}

struct dt_actor *dt_actor_of(struct dt_actors *actors, struct dt_process *process) {
    if (!process)
        return NULL;
    if (process->of_sink)
        return process->of_sink;
    struct dt_actor *actor = new_actor(actors, dt_seen_node(&actors->nodes, process->node));
    actor->kind = process->kind;
    actor->number = process->number;
    actor->process = process;
    process->of_sink = actor;
    g_hash_table_add(actors->alive, actor);
    return actor;
}

static struct dt_actor *find_sum(const struct dt_actors *actors, struct dt_seen_node *node,
                                 const char *show) {
    return g_hash_table_lookup(actors->sums, &(struct dt_actor){.node = node, .show = show});
}

struct dt_actor *dt_actor_sum(struct dt_actors *actors, struct dt_seen_node *node,
                              const char *show) {
    struct dt_actor *actor = find_sum(actors, node, show);

    if (!actor && g_hash_table_size(actors->sums) >= SUMS) {
        node = NULL;
        show = "others";
        actor = find_sum(actors, node, show);
    }
    if (actor)
        return actor;
    actor = new_actor(actors, node);
    actor->is_sum = true;
    actor->show = actor->texts = g_strdup(show);
    g_hash_table_add(actors->sums, actor);
    return actor;
}

GPtrArray *dt_actor_sums(const struct dt_actors *actors) {
    return dt_rows_of(actors->sums);
}

static const char *or_text(const char *a, const char *b) {
    return a && *a ? a : b;
}

struct dt_actor *dt_actor_kind(struct dt_actor *actor) {
    if (!actor || actor->is_sum)
        return actor;
    const struct dt_process *p = actor->process;
    const char *initial = or_text(p ? p->initial : actor->initial, "processes");
    const char *name = or_text(p ? p->name : actor->name, "ports");
    switch (actor->kind) {
    case DT_PORT:
        return dt_actor_sum(actor->actors, actor->node, name);
    case DT_FOREIGN:
        return dt_actor_sum(actor->actors, actor->node, "processes of other nodes");
    default:
        return dt_actor_sum(actor->actors, actor->node, initial);
    }
}

/* Only a process that has children can be among its own ancestors. */
static bool is_above(const struct dt_actor *actor, const struct dt_actor *parent) {
    unsigned n = 0;

    if (!actor->has_children)
        return actor == parent;
    for (; parent && n < GENERATIONS && parent != actor; n++)
        parent = parent->parent;
    return parent;
}

/* The model forgets a parent that is gone, and may learn a different one later. An inconsistent
   recording may therefore have a cycle of parents, whose references would never be released. */
void dt_actor_learn_parent(struct dt_actor *actor) {
    if (actor->parent && actor->kind != DT_PORT)
        return;
    struct dt_actor *parent = dt_actor_of(actor->actors, actor->process->parent);
    if (!parent || parent == actor->parent || parent == actor->owner || is_above(actor, parent))
        return;
    if (actor->parent) {
        dt_actor_drop(actor->owner);
        actor->owner = dt_actor_keep(parent);
        return;
    }
    parent->has_children = true;
    actor->parent = dt_actor_keep(parent);
}

const struct dt_actor *dt_actor_owner(const struct dt_actor *port) {
    return port->owner ? port->owner : port->parent;
}

void dt_actor_forget_parents(struct dt_actor *actor) {
    dt_actor_drop(g_steal_pointer(&actor->parent));
    dt_actor_drop(g_steal_pointer(&actor->owner));
}

static void copy_texts(struct dt_actor *actor, const struct dt_process *process) {
    const char *const from[] = {process->pid,     process->name,  process->show,
                                process->initial, process->label, process->group};
    const char **const to[] = {&actor->pid,     &actor->name,  &actor->show,
                               &actor->initial, &actor->label, &actor->group};
    size_t sizes[G_N_ELEMENTS(from)], all = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        all += sizes[i] = strlen(from[i]) + 1;
    char *at = actor->texts = g_malloc(all);
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++) {
        *to[i] = memcpy(at, from[i], sizes[i]);
        at += sizes[i];
    }
}

struct dt_actor *dt_actor_gone(struct dt_process *process) {
    struct dt_actor *actor = process->of_sink;

    if (!actor)
        return NULL;
    dt_actor_learn_parent(actor);
    copy_texts(actor, process);
    actor->began = process->began;
    actor->ended = process->ended;
    actor->process = NULL;
    process->of_sink = NULL;
    g_hash_table_steal(actor->actors->alive, actor);
    return actor;
}

const char *dt_actor_node(const struct dt_actor *actor) {
    return dt_seen_node_name(actor->node);
}

const char *dt_actor_show(const struct dt_actor *actor) {
    if (!actor)
        return "unknown";
    if (actor->show)
        return actor->show;
    return actor->process ? actor->process->show : "";
}

char *dt_actor_show_pid(const struct dt_actor *actor) {
    if (!actor || actor->is_sum || !actor->pid)
        return g_strdup(dt_actor_show(actor));
    const char *other = *actor->name ? actor->name : *actor->label ? actor->label : actor->initial;
    return *other ? g_strdup_printf("%s %s", actor->pid, other) : g_strdup(actor->pid);
}

char *dt_actor_show_where(const struct dt_actor *actor) {
    if (!actor || !actor->node || !dt_seen_nodes_are_several(&actor->actors->nodes))
        return dt_actor_show_pid(actor);
    g_autofree char *shown = dt_actor_show_pid(actor);
    return g_strdup_printf("%s of %s", shown, actor->node->name);
}
