/* A process or port in the model. */
#pragma once

#include "model/entities/identifiers.h"
#include "model/entities/nodes.h"

struct process {
    struct dt_process seen;
    unsigned references;
    struct key key;
    struct node *node;
    char *pid, *name, *label, *show; /* the texts of `seen`, unless they are empty */
    char *group;
    const char *registered; /* its current name: a key of the node's names; NULL if none */

    bool is_of_proc_lib; /* spawned by proc_lib: a process of OTP's behaviours, or a task */
    bool has_exited;
    bool is_known; /* in the node's table: its identifier refers to it */
    bool parent_unlinked;
    struct process *children, *next, *previous; /* siblings */
    GHashTable *links;
    GList *foreign; /* of another node: its link in the node's queue of these */
    /* The last message_receive that was reported without waiting for a message_delivery. */
    struct {
        unsigned text_hash;
        int64_t time;
    } received;

    /* The state of the parts. Each is NULL until its part needs it, and freed with the process. */
    struct held *held;           /* the event that it holds */
    struct run_state *run_state; /* never NULL */
    struct stack *stack;
    GQueue *open_spans; /* struct span, the oldest last */
    struct calling *calling;
    struct list *in_flight;  /* messages to it */
    struct answers *answers; /* of a port */
};
