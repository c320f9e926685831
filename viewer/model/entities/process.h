/* A process or port, as the entities see it. */
#ifndef DT_VIEWER_MODEL_ENTITIES_PROCESS_H
#define DT_VIEWER_MODEL_ENTITIES_PROCESS_H

#include "model/entities/identifiers.h"
#include "model/entities/nodes.h"

struct process {
    struct dt_process seen;
    unsigned references;
    struct key key;
    struct node *node;
    char *pid, *name, *label, *show; /* what `seen` shows, if it is not empty */
    char *group;
    const char *registered; /* the name by which it is found now: a key of the node's names; NULL */

    bool has_exited;
    bool is_known; /* in the node's table: its identifier stands for it */
    bool parent_unlinked;
    struct process *children, *next, *previous; /* siblings */
    GHashTable *links;
    GList *foreign; /* of another node: its place in the node's */
    void *of[DT_OF_PROCESS];
};

#endif
