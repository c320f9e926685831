#include "model/entities/identity.h"

#include <string.h>

#include "shared/texts.h"

/* -- Families ----------------------------------------------------------------------- */

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

void dt_identity_leave(struct process *p) {
    while (p->children)
        leave_parent(p->children);
    leave_parent(p);
}

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

/* An empty text means unknown, so it does not replace a known one. */
static bool learn_text(char **field, const char *text) {
    return *text && dt_set(field, text);
}

/* The name of a process is the group of its descendants, down to the next named one. */
static bool set_group(struct process *p) {
    const struct dt_process *parent = p->seen.parent;
    const char *group = !parent ? "" : *parent->name ? parent->name : parent->group;
    bool is_new = learn_text(&p->group, group);

    p->seen.group = known(p->group);
    return is_new;
}

/* The next descendant of `root` in preorder. Descends below p only if its group has changed. */
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
            DT_EMIT(p->node->world, process_named, &p->seen, p->node->world->now);
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
    /* A trace may contain a cycle. */
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

bool dt_identity_learn(struct process *p, const struct identity *identity) {
    bool is_named = learn_text(&p->name, identity->name);
    bool is_new = learn_text(&p->label, identity->label);

    if (*identity->initial && strcmp(p->seen.initial, identity->initial) != 0) {
        p->seen.initial = dt_function(p->node->world, identity->initial);
        is_new = true;
    }
    is_new |= set_parent(p, identity->parent);
    is_new |= set_group(p);
    p->seen.name = known(p->name);
    p->seen.label = known(p->label);
    set_show(p);
    return is_new || is_named;
}

void dt_identity_emit(struct process *p) {
    DT_EMIT(p->node->world, process_named, &p->seen, p->node->world->now);
    set_groups_below(p);
}
