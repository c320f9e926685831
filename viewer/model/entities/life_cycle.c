#include "model/entities/life_cycle.h"

#include <string.h>

#include "model/entities/links.h"
#include "model/entities/registered_names.h"
#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "shared/elixir.h"

static void learn(struct process *p, const struct identity *identity) {
    /* The supervisor of Elixir's own application. */
    if (strcmp(identity->name, "elixir_sup") == 0)
        p->node->seen.is_elixir = true;
    if (dt_identity_learn(p, identity))
        dt_identity_emit(p);
}

static void spawned(struct node *node, const struct dt_process_spawn *e) {
    struct process *p = dt_process_create(
        node, e->pid, &(struct identity){dt_process_anywhere(node, e->parent), e->entry, "", ""});

    if (p)
        p->is_of_proc_lib = g_str_has_prefix(e->entry, "proc_lib:init_p/");
}

static void register_name(struct node *node, const struct dt_process_register *e) {
    struct process *p = dt_process_of(node, e->pid);
    g_autofree char *of_elixir = dt_elixir_alias(e->name);
    const char *name = of_elixir ? of_elixir : e->name;

    if (strcmp(e->type, "unregister") == 0) {
        /* The registration was before the recording. A process is unregistered after its exit. */
        if (p && !*p->seen.name)
            learn(p, &(struct identity){NULL, "", name, ""});
        dt_name_unregister(node, name);
        return;
    }
    if (!p || p->has_exited)
        return;
    dt_name_register(p, name);
    learn(p, &(struct identity){NULL, "", name, ""});
}

static void link_event(struct node *node, const char *from, const char *to, const char *type) {
    struct process *p = dt_process_of(node, from), *other = dt_process_anywhere(node, to);

    if (!p || !other || p == other || p->has_exited || other->has_exited)
        return;
    if (strcmp(type, "link") == 0) {
        dt_link(p, other);
        return;
    }
    /* A supervisor unlinks a child before it terminates it. */
    if (other->seen.parent == &p->seen)
        other->parent_unlinked = true;
    dt_unlink(p, other);
}

static void end_process(struct process *p, const char *reason, struct dt_exit report) {
    struct node *node = p->node;

    DT_RUN_HOOKS(node->world, leaving, p);
    report.process = &p->seen;
    report.time = node->world->now;
    report.linked = dt_linked(p, &report.links);
    p->has_exited = true;
    p->seen.ended = report.time;
    DT_RUN_HOOKS(node->world, exited, p, reason);
    /* Its name may follow. */
    node->seen.is_elixir |= strstr(reason, "'__struct__'=>'Elixir.") != NULL;
    report.reason = dt_world_reason(node->world, node->seen.is_elixir, reason);
    DT_EMIT(node->world, process_exited, &report);
    g_free(report.linked);
    dt_unlink_all(p);
    dt_process_retire(p);
}

static void exit_event(struct node *node, const char *pid, const char *reason) {
    struct process *p = dt_process_of(node, pid);

    if (p && !p->has_exited)
        end_process(p, reason, (struct dt_exit){.kind = dt_exit_kind(p, reason)});
}

/* While processes are traced, the event of the exit follows, and says which processes are linked.
 */
static void crash_report(struct node *node, const struct dt_crash_report *e) {
    struct process *p = dt_process_of(node, e->pid);

    if (!p || p->has_exited)
        return;
    learn(p, &(struct identity){NULL, e->initial, e->name, ""});
    if (*e->reason && node->untraced_from != DT_NO_VALUE)
        end_process(p, e->reason, (struct dt_exit){.kind = DT_CRASH, .is_logged = true});
}

static void named(struct node *node, const struct dt_process_named *e, struct process *parent) {
    struct process *p = dt_process_of(node, e->pid);
    g_autoptr(GString) label = g_string_new(NULL);

    if (!p || p->has_exited)
        return;
    /* While no process is traced, names change without events. */
    if (*e->name && (node->untraced_from != DT_NO_VALUE || !dt_process_named(node, e->name)))
        dt_name_give(p, e->name);
    /* A label that is a string is a text, not a term. */
    if (node->seen.is_elixir && *e->label != '"')
        dt_elixir_term(label, e->label);
    else
        g_string_assign(label, e->label);
    learn(p, &(struct identity){parent, e->initial, e->name, label->str});
}

static void identity(struct node *node, const struct dt_process_identity *e) {
    const struct dt_process_named name = {
        .pid = e->pid, .initial = e->initial, .name = e->name, .label = e->label};

    named(node, &name, dt_process_anywhere(node, e->parent));
    dt_node_named(node, e->node, "");
}

static void port_identity(struct node *node, const struct dt_port_identity *e) {
    struct process *p = dt_process_of(node, e->port);

    if (p && !p->has_exited)
        learn(p, &(struct identity){dt_process_of(node, e->owner), "", e->name, ""});
}

void dt_process_event(struct node *node, const struct dt_recorded *event) {
    const union dt_event *e = &event->fields;

    switch (event->probe) {
    case DT_process_spawn:
        spawned(node, &e->process_spawn);
        break;
    case DT_port_open:
        dt_process_create(
            node, e->port_open.port,
            &(struct identity){dt_process_of(node, e->port_open.pid), "", e->port_open.driver, ""});
        break;
    case DT_process_exit:
        exit_event(node, e->process_exit.pid, e->process_exit.reason);
        break;
    case DT_port_exit:
        exit_event(node, e->port_exit.port, e->port_exit.reason);
        break;
    case DT_crash_report:
        crash_report(node, &e->crash_report);
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
    case DT_process_named:
        named(node, &e->process_named, NULL);
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
