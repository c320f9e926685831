/* Nodes and their names. */
#pragma once

#include "model/entities/world.h"

struct node {
    struct dt_node seen;
    struct world *world;
    struct dt_place place; /* identifies the node */
    int64_t traced;        /* when its processes were last known to be traced; 0: never */
    int64_t untraced_from; /* no process has been traced since; DT_NO_VALUE */
    int64_t unsure;        /* events may be lost up to this time; DT_NO_VALUE */
    char *name, *hostname, *otp;
    char *own_name;  /* by its identity, NULL if unknown; several nodes may have the same */
    char *bare_name; /* the same without quotes */
    struct schedulers *schedulers;
    struct peers *peers;
    struct names *names;
    struct processes *processes;

    /* The state of the parts. */
    GQueue *held;   /* the processes that hold an event, oldest first */
    GArray *losses; /* int64_t: when each loss began */
    struct stacks *stacks;
    struct spans *spans;
    struct server_calls *server_calls;
    struct in_flight *in_flight;
    struct early *early;
    struct tokens *tokens;
    struct sends *sends;
    struct deliveries *deliveries;
};

/* A world without nodes. `sink`, its data and `hooks` must outlive it. */
struct world *dt_world_new(const struct dt_sink *sink, void *of_sink, const struct dt_hooks *hooks);
void dt_world_free(struct world *world);
struct node *dt_node_of(struct world *world, const struct dt_recorded *event);
/* dt_node_traced: its processes are traced, as an event of the VM's tracer shows, or a report of
   the application. dt_node_untraced: they have not been traced after the last such event. */
void dt_node_traced(struct node *node);
void dt_node_resumed(struct node *node); /* before an event of the VM's tracer is handled */
void dt_node_untraced(struct node *node);
void dt_node_last(struct node *node); /* after its last event */
/* A text that is "" is unknown. */
void dt_node_named(struct node *node, const char *own_name, const char *otp);

/* Events were lost at a place. Returns its node, or NULL if it has no node or several: for a trace
   shared by several VMs, it is unknown whose events were lost. */
struct node *dt_nodes_lost(struct world *world, const struct dt_place *place, int64_t begin);
/* Events of this place may be lost up to `end`. */
void dt_nodes_unsure(struct world *world, const struct dt_place *place, int64_t end);
