/*
 * Who a picture is about: what a report keeps of a process, also after the model has released it.
 *
 * While the process lives it is its `of_sink`, so no table is searched. The page's timeline hangs
 * its lanes on the same, and takes the names from here.
 */
#ifndef DT_VIEWER_REPORT_WHO_H
#define DT_VIEWER_REPORT_WHO_H

#include "viewer/report.h"

struct dt_seen_node;
struct dt_lane;

/* A process, a port, or a sum: several processes with the same initial call, timers, another node.
 */
struct dt_who {
    unsigned references; /* of tables, lists and lanes */
    enum dt_kind kind;
    bool is_sum;
    bool is_traced; /* the trace has events of its own, so what it lacks did not happen */
    bool ran;       /* the trace tells when it ran */
    bool has_children;
    uint64_t number;
    struct dt_seen_node *node;
    struct dt_process *process; /* while it lives; then the texts below are NULL */
    const char *pid, *name, *show, *initial, *label, *group;
    char *texts; /* the block that has all of them */
    struct dt_who *parent;
    struct dt_lane *lane; /* while it lives; NULL if there is no timeline */

    int64_t began, ended;
    int64_t run, runnable, waiting, collecting; /* ns */
    int64_t longest_wait, longest_wait_at;
    uint64_t collections, sent, received, mailbox_max, bytes_out;
    GArray *stack; /* struct dt_called: its calls that have not ended */
};

/* NULL of NULL. */
struct dt_who *dt_who_of(struct dt_report *report, struct dt_process *process);
struct dt_who *dt_who_keep(struct dt_who *who);
void dt_who_drop(struct dt_who *who);
/* The node's name; "" if it is unknown. */
const char *dt_who_node(const struct dt_who *who);
const char *dt_who_show(const struct dt_who *who); /* of NULL: "unknown" */

#endif
