#include "who/who.h"

#include <string.h>

enum {
    /* The maximum number of sums; further ones are counted as "others". */
    SUMS = 4096,
    /* Ancestors that are searched for a cycle; a longer chain is assumed to be one. */
    GENERATIONS = 1000,
};

struct dt_who *dt_who_keep(struct dt_who *who) {
    if (who)
        who->references++;
    return who;
}

/* Drops the ancestors in a loop, because recursion could be deep. */
void dt_who_drop(struct dt_who *who) {
    while (who && --who->references == 0) {
        struct dt_who *parent = who->parent;

        g_free(who->texts);
        who->whos->free_activity(who->activity);
        g_free(who);
        who = parent;
    }
}

static unsigned sum_hash(const void *of) {
    const struct dt_who *sum = of;

    return g_direct_hash(sum->node) ^ g_str_hash(sum->show);
}

static gboolean sum_equal(const void *a, const void *b) {
    const struct dt_who *x = a, *y = b;

    return x->node == y->node && strcmp(x->show, y->show) == 0;
}

static void drop_who(void *who) {
    dt_who_drop(who);
}

void dt_whos_init(struct dt_whos *whos, struct dt_activity *(*new_activity)(void),
                  void (*free_activity)(struct dt_activity *)) {
    whos->new_activity = new_activity;
    whos->free_activity = free_activity;
    dt_seen_nodes_init(&whos->nodes);
    whos->alive = g_hash_table_new_full(NULL, NULL, drop_who, NULL);
    whos->sums = g_hash_table_new_full(sum_hash, sum_equal, drop_who, NULL);
}

void dt_whos_free(struct dt_whos *whos) {
    g_hash_table_destroy(whos->alive);
    g_hash_table_destroy(whos->sums);
    dt_seen_nodes_free(&whos->nodes);
}

static struct dt_who *new_who(struct dt_whos *whos, struct dt_seen_node *node) {
    struct dt_who *who = g_new0(struct dt_who, 1);

    who->references = 1;
    who->whos = whos;
    who->node = node;
    who->began = who->ended = DT_NO_VALUE;
    who->activity = whos->new_activity();
    return who;
}

struct dt_who *dt_who_of(struct dt_whos *whos, struct dt_process *process) {
    if (!process)
        return NULL;
    if (process->of_sink)
        return process->of_sink;
    struct dt_who *who = new_who(whos, dt_seen_node(&whos->nodes, process->node));
    who->kind = process->kind;
    who->number = process->number;
    who->process = process;
    process->of_sink = who;
    g_hash_table_add(whos->alive, who);
    return who;
}

static struct dt_who *find_sum(const struct dt_whos *whos, struct dt_seen_node *node,
                               const char *show) {
    return g_hash_table_lookup(whos->sums, &(struct dt_who){.node = node, .show = show});
}

struct dt_who *dt_who_sum(struct dt_whos *whos, struct dt_seen_node *node, const char *show) {
    struct dt_who *who = find_sum(whos, node, show);

    if (!who && g_hash_table_size(whos->sums) >= SUMS) {
        node = NULL;
        show = "others";
        who = find_sum(whos, node, show);
    }
    if (who)
        return who;
    who = new_who(whos, node);
    who->is_sum = true;
    who->show = who->texts = g_strdup(show);
    g_hash_table_add(whos->sums, who);
    return who;
}

static const char *or_text(const char *a, const char *b) {
    return a && *a ? a : b;
}

struct dt_who *dt_who_kind(struct dt_who *who) {
    if (!who || who->is_sum)
        return who;
    const struct dt_process *p = who->process;
    const char *initial = or_text(p ? p->initial : who->initial, "processes");
    const char *name = or_text(p ? p->name : who->name, "ports");
    switch (who->kind) {
    case DT_PORT:
        return dt_who_sum(who->whos, who->node, name);
    case DT_FOREIGN:
        return dt_who_sum(who->whos, who->node, "processes of other nodes");
    default:
        return dt_who_sum(who->whos, who->node, initial);
    }
}

/* Only a process that has children can be among its own ancestors. */
static bool is_above(const struct dt_who *who, const struct dt_who *parent) {
    unsigned n = 0;

    if (!who->has_children)
        return who == parent;
    for (; parent && n < GENERATIONS && parent != who; n++)
        parent = parent->parent;
    return parent;
}

/* The model forgets a parent that is gone, and may learn a different one later. An inconsistent
   recording may therefore have a cycle of parents, whose references would never be released. */
void dt_who_learn_parent(struct dt_who *who) {
    if (who->parent)
        return;
    struct dt_who *parent = dt_who_of(who->whos, who->process->parent);
    if (!parent || is_above(who, parent))
        return;
    parent->has_children = true;
    who->parent = dt_who_keep(parent);
}

static void copy_texts(struct dt_who *who, const struct dt_process *process) {
    const char *const from[] = {process->pid,     process->name,  process->show,
                                process->initial, process->label, process->group};
    const char **const to[] = {&who->pid,     &who->name,  &who->show,
                               &who->initial, &who->label, &who->group};
    size_t sizes[G_N_ELEMENTS(from)], all = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        all += sizes[i] = strlen(from[i]) + 1;
    char *at = who->texts = g_malloc(all);
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++) {
        *to[i] = memcpy(at, from[i], sizes[i]);
        at += sizes[i];
    }
}

struct dt_who *dt_who_gone(struct dt_process *process) {
    struct dt_who *who = process->of_sink;

    if (!who)
        return NULL;
    dt_who_learn_parent(who);
    copy_texts(who, process);
    who->began = process->began;
    who->ended = process->ended;
    who->process = NULL;
    process->of_sink = NULL;
    g_hash_table_steal(who->whos->alive, who);
    return who;
}

const char *dt_who_node(const struct dt_who *who) {
    return dt_seen_node_name(who->node);
}

const char *dt_who_show(const struct dt_who *who) {
    if (!who)
        return "unknown";
    if (who->show)
        return who->show;
    return who->process ? who->process->show : "";
}

char *dt_who_show_pid(const struct dt_who *who) {
    if (!who || who->is_sum || !who->pid)
        return g_strdup(dt_who_show(who));
    const char *other = *who->name ? who->name : *who->label ? who->label : who->initial;
    return *other ? g_strdup_printf("%s %s", who->pid, other) : g_strdup(who->pid);
}

char *dt_who_show_where(const struct dt_who *who) {
    if (!who || !who->node || !dt_seen_nodes_are_several(&who->whos->nodes))
        return dt_who_show_pid(who);
    g_autofree char *shown = dt_who_show_pid(who);
    return g_strdup_printf("%s of %s", shown, who->node->name);
}
