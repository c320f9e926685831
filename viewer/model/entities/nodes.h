/* Nodes, and their names. */
#ifndef DT_VIEWER_MODEL_ENTITIES_NODES_H
#define DT_VIEWER_MODEL_ENTITIES_NODES_H

#include "model/entities/world.h"

/* What an event tells of its node: the VM's OS process or, without one, the trace. */
struct place {
    const char *hostname;
    int64_t vpid;
    uint64_t trace;
};

struct node {
    struct dt_node seen;
    struct world *world;
    struct place place;
    int64_t traced; /* the time of the last event that the VM's tracer told */
    int64_t unsure; /* until then, events may be lost; DT_NO_VALUE */
    char *name, *hostname, *otp;
    char *own_name;  /* of its identity, NULL if unknown; those of several nodes may be equal */
    char *bare_name; /* the same without quotes */
    struct schedulers *schedulers;
    struct peers *peers;
    struct names *names;
    struct processes *processes;
    void *of[DT_OF_NODE];
};

void dt_nodes_new(struct world *world);
void dt_nodes_free(struct world *world);
struct node *dt_node_of(struct world *world, const struct dt_recorded *event);
/* Texts that are "" are unknown. */
void dt_node_named(struct node *node, const char *own_name, const char *otp);

/* Events were lost at a place. Returns the node, or NULL if it is none or several: a trace that VMs
   share does not tell whose events were lost. */
struct node *dt_nodes_lost(struct world *world, const struct place *place, int64_t begin);
/* Up to `end`, events of this place may be lost. */
void dt_nodes_unsure(struct world *world, const struct place *place, int64_t end);

#endif
