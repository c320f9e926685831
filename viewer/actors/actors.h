/*
 * The data that sinks keep for each process, even after the model has released it.
 *
 *     model -> dt_process, while it lives -> dt_actor, while a table, list or lane refers to it
 *
 * It uses `of_sink` of processes, which avoids a table lookup. A sink stores its own data of a
 * process in `of_sink` of the dt_actor, the summary its numbers in `activity`.
 */
#pragma once

#include "actors/seen_nodes.h"

struct dt_activity;

/* A process, a port, or a sum: several processes with the same initial call, all timers, or another
   node. */
struct dt_actor {
    unsigned references;
    struct dt_actors *actors;
    enum dt_kind kind;
    bool is_sum;
    bool has_children;
    uint64_t number;
    struct dt_seen_node *node;
    struct dt_process *process; /* while it lives; then the texts below are NULL */
    const char *pid, *name, *show, *initial, *label, *group;
    char *texts;                  /* the memory block of these texts */
    struct dt_actor *parent;      /* of a port: what opened it, a process or a listening port */
    struct dt_actor *owner;       /* of a port: the process that got it later; NULL if none */
    struct dt_activity *activity; /* owned */
    void *of_sink;                /* while it lives */
    int64_t began, ended;
};

struct dt_actors {
    struct dt_seen_nodes nodes;
    GHashTable *alive; /* each struct dt_actor that is the of_sink of a process */
    GHashTable *sums;  /* the sums, by node and text */
    struct dt_activity *(*new_activity)(void);
    void (*free_activity)(struct dt_activity *);
};
/* The functions make and free the numbers of each process, whose type actors/ does not know. */
void dt_actors_init(struct dt_actors *actors, struct dt_activity *(*new_activity)(void),
                    void (*free_activity)(struct dt_activity *));
/* To be called when no reference is left. */
void dt_actors_free(struct dt_actors *actors);

/* Returns NULL for NULL. */
struct dt_actor *dt_actor_of(struct dt_actors *actors, struct dt_process *process);
struct dt_actor *dt_actor_sum(struct dt_actors *actors, struct dt_seen_node *node,
                              const char *show);
/* All sums, to be freed. */
GPtrArray *dt_actor_sums(const struct dt_actors *actors);
/* The sum of the processes with the same initial call, or of the ports with the same name. */
struct dt_actor *dt_actor_kind(struct dt_actor *actor);
/* Notes the process's parent: of a port, its current owner. */
void dt_actor_learn_parent(struct dt_actor *actor);
const struct dt_actor *dt_actor_owner(const struct dt_actor *port);
/* Forgets parent and owner. */
void dt_actor_forget_parents(struct dt_actor *actor);
/* Copies the texts of a process that is gone. Returns the dt_actor with the reference that the
   process held; NULL if it had none. */
struct dt_actor *dt_actor_gone(struct dt_process *process);

struct dt_actor *dt_actor_keep(struct dt_actor *actor);
void dt_actor_drop(struct dt_actor *actor);

/* The node's name; "" if it is unknown. */
const char *dt_actor_node(const struct dt_actor *actor);
const char *dt_actor_show(const struct dt_actor *actor); /* "unknown" for NULL */
/* The pid first, to find a process by it: "<0.90.0> shop_db". To be freed by g_free. */
char *dt_actor_show_pid(const struct dt_actor *actor);
/* The same, with the node if there are several. */
char *dt_actor_show_where(const struct dt_actor *actor);
