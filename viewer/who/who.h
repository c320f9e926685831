/*
 * The data that sinks keep for each process, even after the model has released it.
 *
 *     model -> dt_process, while it lives -> dt_who, as long as a table, list or lane refers to it
 *
 * It uses `of_sink` of processes, which avoids a table lookup. A sink stores its own data of a
 * process in `of_sink` of the dt_who, the summary its numbers in `activity`.
 */
#pragma once

#include "who/seen_nodes.h"

struct dt_activity;

/* A process, a port, or a sum: several processes with the same initial call, all timers, or another
   node. */
struct dt_who {
    unsigned references;
    struct dt_whos *whos;
    enum dt_kind kind;
    bool is_sum;
    bool has_children;
    uint64_t number;
    struct dt_seen_node *node;
    struct dt_process *process; /* while it lives; then the texts below are NULL */
    const char *pid, *name, *show, *initial, *label, *group;
    char *texts; /* the memory block of these texts */
    struct dt_who *parent;
    struct dt_activity *activity; /* owned */
    void *of_sink;                /* while it lives */
    int64_t began, ended;
};

struct dt_whos {
    struct dt_seen_nodes nodes;
    GHashTable *alive; /* each struct dt_who that is the of_sink of a process */
    GHashTable *sums;  /* the sums, by node and text */
    struct dt_activity *(*new_activity)(void);
    void (*free_activity)(struct dt_activity *);
};
/* The functions make and free the numbers of each process, whose type who/ does not know. */
void dt_whos_init(struct dt_whos *whos, struct dt_activity *(*new_activity)(void),
                  void (*free_activity)(struct dt_activity *));
/* To be called when no reference is left. */
void dt_whos_free(struct dt_whos *whos);

/* Returns NULL for NULL. */
struct dt_who *dt_who_of(struct dt_whos *whos, struct dt_process *process);
struct dt_who *dt_who_sum(struct dt_whos *whos, struct dt_seen_node *node, const char *show);
/* The sum of the processes with the same initial call, or of the ports with the same name. */
struct dt_who *dt_who_kind(struct dt_who *who);
void dt_who_learn_parent(struct dt_who *who);
/* Copies the texts of a process that is gone. Returns the dt_who with the reference that the
   process held; NULL if it had none. */
struct dt_who *dt_who_gone(struct dt_process *process);

struct dt_who *dt_who_keep(struct dt_who *who);
void dt_who_drop(struct dt_who *who);

/* The node's name; "" if it is unknown. */
const char *dt_who_node(const struct dt_who *who);
const char *dt_who_show(const struct dt_who *who); /* "unknown" for NULL */
/* The pid first, to find a process by it: "<0.90.0> shop_db". To be freed by g_free. */
char *dt_who_show_pid(const struct dt_who *who);
/* The same, with the node if there are several. */
char *dt_who_show_where(const struct dt_who *who);
