/*
 * Processes and ports: identifiers, names, parents, links, exits.
 *
 * One that has exited stays known for a while, so that what comes late, as a message sent to it,
 * finds it. A new one with its identifier takes its place in the table at once.
 */
#include <string.h>

#include "viewer/far.h"
#include "viewer/model_parts.h"
#include "viewer/texts.h"

enum {
    /* Per node: exited processes that are not told as gone yet. */
    EXITED_MAX = 10000,
    /* And processes of other nodes, whose exits are not recorded: those that were named last. */
    FOREIGN_MAX = 10000,
    /* Names that nobody has; with more of them, all are forgotten. */
    NOBODY_MAX = 100000,
    /* A process whose spawn is told this much later than it was first seen was not spawned by
       that: its identifier is used again, and its exit was not recorded. */
    SPAWN_LATE_NS = 100 * 1000 * 1000,
};

const char *const dt_kind_names[] = {
    [DT_PROCESS] = "process",
    [DT_PORT] = "port",
    [DT_FOREIGN] = "foreign",
};

/* -- Identifiers -------------------------------------------------------------------- */

/* Moves past a number of so many bits at most. */
static bool number(const char **text, unsigned bits, uint64_t *n) {
    const char *s = *text;

    *n = 0;
    while (*s >= '0' && *s <= '9' && *n >> bits == 0)
        *n = *n * 10 + (uint64_t)(*s++ - '0');
    if (s == *text || *n >> bits)
        return false;
    *text = s;
    return true;
}

bool dt_is_identifier(const char *text) {
    return *text == '<' || g_str_has_prefix(text, "#Port<");
}

bool dt_is_nobody(const char *text) {
    /* All bits of a pid, which has 28 of them, and 60 in later releases. */
    return strcmp(text, "<0.32767.8191>") == 0 || strcmp(text, "<0.268435455.4294967295>") == 0;
}

static bool parse(const char *text, struct key *key, enum dt_kind *kind) {
    bool is_port = *text == '#';
    uint64_t node, id, serial = 0;

    if (!dt_is_identifier(text) || dt_is_nobody(text))
        return false;
    text += is_port ? sizeof "#Port<" - 1 : 1;
    if (!number(&text, 32, &node) || *text++ != '.' || !number(&text, is_port ? 60 : 32, &id))
        return false;
    if (!is_port && (*text++ != '.' || !number(&text, 32, &serial)))
        return false;
    if (strcmp(text, ">") != 0)
        return false;
    *key = (struct key){node << 1 | is_port, id ^ serial << 32};
    *kind = node ? DT_FOREIGN : is_port ? DT_PORT : DT_PROCESS;
    return true;
}

static guint hash(gconstpointer key) {
    const struct key *k = key;
    uint64_t h = (k->number ^ k->kind_and_node << 40) * UINT64_C(0x9e3779b97f4a7c15);

    return (guint)(h >> 32);
}

static gboolean equal(gconstpointer a, gconstpointer b) {
    const struct key *x = a, *y = b;

    return x->number == y->number && x->kind_and_node == y->kind_and_node;
}

/* -- References --------------------------------------------------------------------- */

static void leave_parent(struct process *p) {
    struct process *parent = (struct process *)p->seen.parent;

    if (!parent)
        return;
    if (p->previous)
        p->previous->next = p->next;
    else
        parent->children = p->next;
    if (p->next)
        p->next->previous = p->previous;
    p->next = p->previous = NULL;
    p->seen.parent = NULL;
}

static void free_process(struct process *p) {
    while (p->children)
        leave_parent(p->children);
    leave_parent(p);
    dt_state_leave(p);
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

void dt_process_unref(struct process *p) {
    if (--p->references)
        return;
    DT_TELL(p->node->model, process_gone, &p->seen);
    free_process(p);
}

/* -- Who they are ------------------------------------------------------------------- */

static const char *known(const char *text) {
    return text ? text : "";
}

static void set_show(struct process *p) {
    const char *title = *p->seen.name    ? p->seen.name
                        : *p->seen.label ? p->seen.label
                                         : p->seen.initial;

    g_free(p->show);
    p->show = *title ? g_strdup_printf("%s %s", title, p->pid) : NULL;
    p->seen.show = p->show ? p->show : p->pid;
}

/* A trace that lacks a text does not tell that there is none. */
static bool learn_text(char **field, const char *text) {
    return *text && dt_set(field, text);
}

/* The name of a process is the group of those below it, down to the next name. */
static bool set_group(struct process *p) {
    const struct dt_process *parent = p->seen.parent;
    const char *group = !parent ? "" : *parent->name ? parent->name : parent->group;
    bool is_new = learn_text(&p->group, group);

    p->seen.group = known(p->group);
    return is_new;
}

/* The next one below `root`, from top to bottom; below p only if its group has changed. */
static struct process *next_below(const struct process *root, struct process *p, bool is_new) {
    if (is_new && p->children)
        return p->children;
    while (p != root && !p->next)
        p = (struct process *)p->seen.parent;
    return p == root ? NULL : p->next;
}

static void set_groups_below(struct process *root) {
    struct process *p = next_below(root, root, true);

    while (p) {
        bool is_new = set_group(p);

        if (is_new)
            DT_TELL(p->node->model, process_named, &p->seen, p->node->model->now);
        p = next_below(root, p, is_new && !p->name);
    }
}

static bool is_above(const struct dt_process *p, const struct dt_process *child) {
    for (; child; child = child->parent)
        if (child == p)
            return true;
    return false;
}

static bool set_parent(struct process *p, struct process *parent) {
    if (!parent || p->seen.parent == &parent->seen)
        return false;
    /* Traces may claim circles. */
    if (parent == p || (p->children && is_above(&p->seen, &parent->seen)))
        return false;
    leave_parent(p);
    p->seen.parent = &parent->seen;
    p->next = parent->children;
    if (p->next)
        p->next->previous = p;
    parent->children = p;
    return true;
}

struct who {
    struct process *parent;
    const char *initial, *name, *label;
};

/* Returns whether something is new. */
static bool learn(struct process *p, const struct who *who) {
    bool is_named = learn_text(&p->name, who->name);
    bool is_new = learn_text(&p->label, who->label);

    if (*who->initial && strcmp(p->seen.initial, who->initial) != 0) {
        p->seen.initial = dt_function(p->node->model, who->initial);
        is_new = true;
    }
    is_new |= set_parent(p, who->parent);
    is_new |= set_group(p);
    p->seen.name = known(p->name);
    p->seen.label = known(p->label);
    set_show(p);
    return is_new || is_named;
}

static void tell_learned(struct process *p) {
    DT_TELL(p->node->model, process_named, &p->seen, p->node->model->now);
    set_groups_below(p);
}

/* -- The table ---------------------------------------------------------------------- */

static struct process *insert(struct node *node, const char *pid, const struct key *key,
                              enum dt_kind kind) {
    struct process *p = g_new0(struct process, 1);
    struct dt_model *model = node->model;

    p->key = *key;
    p->node = node;
    p->references = 1;
    p->pid = g_strdup(pid);
    p->is_known = true;
    p->losses = node->losses->len;
    p->in = p->out = "";
    p->seen = (struct dt_process){.kind = kind,
                                  .number = ++model->processes,
                                  .node = &node->seen,
                                  .pid = p->pid,
                                  .name = "",
                                  .initial = "",
                                  .label = "",
                                  .show = p->pid,
                                  .group = "",
                                  .began = DT_NO_VALUE,
                                  .first = model->now,
                                  .ended = DT_NO_VALUE,
                                  .since = model->now};
    g_hash_table_insert(node->processes, &p->key, p);
    if (kind == DT_FOREIGN) {
        g_queue_push_tail(&node->foreign, p);
        p->foreign = node->foreign.tail;
    }
    return p;
}

static void forget(struct process *p) {
    if (p->is_known)
        g_hash_table_remove(p->node->processes, &p->key);
    p->is_known = false;
}

static void unname(struct process *p) {
    if (p->registered)
        g_hash_table_remove(p->node->names, g_steal_pointer(&p->registered));
}

/* A process has one name, a name one process: what a trace says besides is a loss. */
static void give_name(struct process *p, const char *name) {
    struct process *former = g_hash_table_lookup(p->node->names, name);
    char *key;

    if (former == p)
        return;
    if (former)
        unname(former);
    unname(p);
    p->registered = key = g_strdup(name);
    g_hash_table_insert(p->node->names, key, p);
}

/* It lives no more: nothing is told of it but what comes late. */
static void bury(struct process *p) {
    struct node *node = p->node;

    unname(p);
    if (p->foreign)
        g_queue_delete_link(&node->foreign, g_steal_pointer(&p->foreign));
    g_queue_push_tail(&node->exited, p);
}

static void unlink_all(struct process *p) {
    GHashTableIter i;
    gpointer other;

    if (!p->links)
        return;
    g_hash_table_iter_init(&i, p->links);
    while (g_hash_table_iter_next(&i, &other, NULL))
        g_hash_table_remove(((struct process *)other)->links, p);
    g_clear_pointer(&p->links, g_hash_table_destroy);
}

/* Its identifier stands for another one now. */
static void replace(struct process *p) {
    forget(p);
    if (p->has_exited)
        return;
    dt_release(p);
    dt_state_settle(p);
    dt_state_end(p, true);
    dt_calls_cut(p, p->node->model->now, DT_LEFT_UNKNOWN);
    dt_spans_exit(p->node, p);
    unlink_all(p);
    p->has_exited = true;
    bury(p);
}

void dt_processes_forget(struct node *node) {
    while (node->foreign.length > FOREIGN_MAX)
        replace(g_queue_peek_head(&node->foreign));
    while (node->exited.length > EXITED_MAX) {
        struct process *oldest = g_queue_pop_head(&node->exited);

        forget(oldest);
        dt_process_unref(oldest);
    }
}

/* It was named now. */
static void renew(struct process *p) {
    GQueue *all = &p->node->foreign;

    if (p->foreign && p->foreign != all->tail) {
        g_queue_unlink(all, p->foreign);
        g_queue_push_tail_link(all, p->foreign);
    }
}

struct process *dt_process_of(struct node *node, const char *identifier) {
    struct key key;
    enum dt_kind kind;
    struct process *p;

    if (!parse(identifier, &key, &kind))
        return NULL;
    p = g_hash_table_lookup(node->processes, &key);
    if (!p) {
        p = insert(node, identifier, &key, kind);
        DT_TELL(node->model, process, &p->seen, node->model->now);
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
    there = dt_far_at_home(identifier);
    p = dt_process_of(home, there);
    g_free(there);
    return p;
}

static struct process *born(struct node *node, const char *identifier, const struct who *who) {
    struct key key;
    enum dt_kind kind;
    struct process *p;
    int64_t now = node->model->now;

    if (!parse(identifier, &key, &kind))
        return NULL;
    p = g_hash_table_lookup(node->processes, &key);
    if (p &&
        (p->has_exited || p->seen.began != DT_NO_VALUE || now - p->seen.first > SPAWN_LATE_NS)) {
        replace(p);
        p = NULL;
    }
    if (p) {
        p->seen.began = p->seen.first;
        if (learn(p, who))
            tell_learned(p);
        return p;
    }
    p = insert(node, identifier, &key, kind);
    p->seen.began = now;
    learn(p, who);
    DT_TELL(node->model, process, &p->seen, now);
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
    DT_TELL(node->model, process, &p->seen, node->model->now);
    return p;
}

struct process *dt_process_named(struct node *node, const char *name) {
    return g_hash_table_lookup(node->names, name);
}

/* -- Events ------------------------------------------------------------------------- */

static void register_name(struct node *node, const struct dt_process_register *e) {
    struct process *p = dt_process_of(node, e->pid), *former;

    if (strcmp(e->type, "unregister") == 0) {
        former = g_hash_table_lookup(node->names, e->name);
        if (former)
            unname(former);
        if (g_hash_table_size(node->nobody) >= NOBODY_MAX)
            g_hash_table_remove_all(node->nobody);
        g_hash_table_add(node->nobody, g_strdup(e->name));
        return;
    }
    if (!p || p->has_exited)
        return;
    g_hash_table_remove(node->nobody, e->name);
    give_name(p, e->name);
    if (learn(p, &(struct who){NULL, "", e->name, ""}))
        tell_learned(p);
}

/* Of pointers to processes, as the model or as sinks see them. */
static int by_number(const void *a, const void *b) {
    const struct dt_process *p = *(struct dt_process *const *)a;
    const struct dt_process *q = *(struct dt_process *const *)b;

    return dt_compare((int64_t)p->number, (int64_t)q->number);
}

static void add_link(struct process *p, struct process *other) {
    if (!p->links)
        p->links = g_hash_table_new(NULL, NULL);
    g_hash_table_add(p->links, other);
}

static void link_event(struct node *node, const char *from, const char *to, const char *type) {
    struct process *p = dt_process_of(node, from), *other = dt_process_anywhere(node, to);

    if (!p || !other || p == other || p->has_exited || other->has_exited)
        return;
    if (strcmp(type, "link") == 0) {
        add_link(p, other);
        add_link(other, p);
        return;
    }
    /* A supervisor does so before it ends a child. */
    if (other->seen.parent == &p->seen)
        other->parent_unlinked = true;
    if (p->links)
        g_hash_table_remove(p->links, other);
    if (other->links)
        g_hash_table_remove(other->links, p);
}

static bool is_crash(const struct process *p, const char *reason) {
    if (strcmp(reason, "normal") == 0 || strcmp(reason, "shutdown") == 0 ||
        g_str_has_prefix(reason, "{shutdown,"))
        return false;
    /* A VM that halts kills its ports. */
    return strcmp(reason, "killed") != 0 || (!p->parent_unlinked && p->seen.kind != DT_PORT);
}

static void exit_event(struct node *node, const char *pid, const char *reason) {
    struct process *p = dt_process_of(node, pid);
    struct dt_exit told;
    guint links = 0;

    if (!p || p->has_exited)
        return;
    dt_release(p);
    told = (struct dt_exit){.process = &p->seen,
                            .time = node->model->now,
                            .reason = reason,
                            .is_crash = is_crash(p, reason)};
    if (p->links)
        told.linked = (struct dt_process **)g_hash_table_get_keys_as_array(p->links, &links);
    told.links = links;
    if (links)
        qsort(told.linked, links, sizeof(struct dt_process *), by_number);
    p->has_exited = true;
    p->seen.ended = told.time;
    dt_state_settle(p);
    dt_state_exiting(p);
    dt_calls_cut(p, told.time, DT_LEFT_EXIT);
    dt_spans_exit(node, p);
    dt_server_calls_exit(p, reason);
    DT_TELL(node->model, process_exited, &told);
    g_free(told.linked);
    unlink_all(p);
    bury(p);
}

static void identity(struct node *node, const struct dt_process_identity *e) {
    struct process *p = dt_process_of(node, e->pid);

    if (p && !p->has_exited) {
        if (*e->name && !g_hash_table_contains(node->names, e->name))
            give_name(p, e->name);
        if (learn(p, &(struct who){dt_process_anywhere(node, e->parent), e->initial, e->name,
                                   e->label}))
            tell_learned(p);
    }
    dt_node_named(node, e->node, "");
}

static void port_identity(struct node *node, const struct dt_port_identity *e) {
    struct process *p = dt_process_of(node, e->port);

    if (p && !p->has_exited &&
        learn(p, &(struct who){dt_process_of(node, e->owner), "", e->name, ""}))
        tell_learned(p);
}

void dt_process_event(struct node *node, const struct dt_recorded *event) {
    const union dt_event *e = &event->fields;

    switch (event->probe) {
    case DT_process_spawn:
        born(node, e->process_spawn.pid,
             &(struct who){dt_process_anywhere(node, e->process_spawn.parent),
                           e->process_spawn.entry, "", ""});
        break;
    case DT_port_open:
        born(node, e->port_open.port,
             &(struct who){dt_process_of(node, e->port_open.pid), "", e->port_open.driver, ""});
        break;
    case DT_process_exit:
        exit_event(node, e->process_exit.pid, e->process_exit.reason);
        break;
    case DT_port_exit:
        exit_event(node, e->port_exit.port, e->port_exit.reason);
        break;
    case DT_process_link:
        link_event(node, e->process_link.from, e->process_link.to, e->process_link.type);
        break;
    case DT_port_link:
        link_event(node, e->port_link.from, e->port_link.to, e->port_link.type);
        break;
    case DT_process_register:
        register_name(node, &e->process_register);
        break;
    case DT_process_identity:
        identity(node, &e->process_identity);
        break;
    case DT_port_identity:
        port_identity(node, &e->port_identity);
        break;
    case DT_node_identity:
        dt_node_identity(node, &e->node_identity);
        break;
    default:
        break;
    }
}

/* -- Begin and end ------------------------------------------------------------------ */

void dt_processes_new(struct node *node) {
    node->processes = g_hash_table_new(hash, equal);
    node->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    node->nobody = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&node->exited);
}

/* The live ones in the order in which they became known. */
static GPtrArray *living(struct node *node) {
    GPtrArray *all = g_ptr_array_new();
    GHashTableIter i;
    gpointer p;

    g_hash_table_iter_init(&i, node->processes);
    while (g_hash_table_iter_next(&i, NULL, &p))
        if (!((struct process *)p)->has_exited)
            g_ptr_array_add(all, p);
    g_ptr_array_sort(all, by_number);
    return all;
}

void dt_processes_end(struct node *node) {
    GPtrArray *all = living(node);
    struct process *p;

    for (unsigned i = 0; i < all->len; i++) {
        p = all->pdata[i];
        dt_state_settle(p);
        dt_state_end(p, true);
        dt_calls_cut(p, node->model->now, DT_LEFT_UNKNOWN);
    }
    while ((p = g_queue_pop_head(&node->exited))) {
        forget(p);
        dt_process_unref(p);
    }
    for (unsigned i = 0; i < all->len; i++) {
        p = all->pdata[i];
        unlink_all(p);
        forget(p);
        dt_process_unref(p);
    }
    g_ptr_array_free(all, TRUE);
}

void dt_processes_free(struct node *node) {
    g_queue_clear(&node->foreign);
    g_hash_table_destroy(node->processes);
    g_hash_table_destroy(node->names);
    g_hash_table_destroy(node->nobody);
}
