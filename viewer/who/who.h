/*
 * The data that sinks keep for each process, even after the model has released it.
 *
 *     model -> dt_process, while it lives -> dt_who, as long as a table, list or lane refers to it
 *
 * It uses `of_sink` of processes, which avoids a table lookup. A sink stores its own data of a
 * process in `of_sink` of the dt_who. The summary stores its counters in dt_who.
 */
#pragma once

#include "who/seen_nodes.h"

/* The samples of a process. */
struct dt_sampled {
    uint64_t count, rises;            /* samples; samples with a longer queue than the one before */
    int64_t first, last;              /* times */
    uint64_t first_queue, last_queue; /* messages */
    uint64_t max_queue, max_memory;   /* bytes */
    int64_t still_since;              /* has had messages and not run since then; DT_NO_VALUE */
    int64_t longest_still;            /* ns */
    uint64_t still_queue;             /* messages at the end of `longest_still` */
    bool was_suspended;               /* at the end of `longest_still` */
};

/* A process, a port, or a sum: several processes with the same initial call, all timers, or another
   node. */
struct dt_who {
    unsigned references;
    enum dt_kind kind;
    bool is_sum;
    bool is_traced; /* the trace has events of this process, so absent events did not happen */
    bool ran;       /* the trace shows when it ran */
    bool has_children;
    uint64_t number;
    struct dt_seen_node *node;
    struct dt_process *process; /* while it lives; then the texts below are NULL */
    const char *pid, *name, *show, *initial, *label, *group;
    char *texts; /* the memory block of these texts */
    struct dt_who *parent;
    void *of_sink; /* while it lives */

    int64_t began, ended;
    int64_t run, runnable, waiting, collecting; /* ns; `run` is time on a CPU */
    int64_t dirty_cpu;                          /* of `run`, on dirty CPU schedulers */
    int64_t dirty_io;                           /* not of `run` */
    int64_t longest_wait, longest_wait_at;
    uint64_t collections, sent, received, mailbox_max, bytes_out;
    uint64_t reached;           /* messages that reached it, including inferred ones */
    uint64_t call_events;       /* calls and returns */
    bool has_crashed;           /* its exit was a crash */
    struct dt_sampled *sampled; /* owned; NULL without a sample */
    struct dt_heap *heap;       /* owned; data of the summary; NULL if it was never large */
    GArray *stack;              /* owned; its open calls */
};

struct dt_whos {
    struct dt_seen_nodes nodes;
    GHashTable *alive; /* each struct dt_who that is the of_sink of a process */
    GHashTable *sums;  /* the sums, by node and text */
};
void dt_whos_init(struct dt_whos *whos);
void dt_whos_free(struct dt_whos *whos);

/* Returns NULL for NULL. */
struct dt_who *dt_who_of(struct dt_whos *whos, struct dt_process *process);
struct dt_who *dt_who_sum(struct dt_whos *whos, struct dt_seen_node *node, const char *show);
/* The sum of the processes with the same initial call, or of the ports with the same name. */
struct dt_who *dt_who_kind(struct dt_whos *whos, struct dt_who *who);
void dt_who_learn_parent(struct dt_whos *whos, struct dt_who *who);
/* Copies the texts of a process that is gone. Returns the dt_who with the reference that the
   process held; NULL if it had none. */
struct dt_who *dt_who_gone(struct dt_whos *whos, struct dt_process *process);

struct dt_who *dt_who_keep(struct dt_who *who);
void dt_who_drop(struct dt_who *who);

/* The node's name; "" if it is unknown. */
const char *dt_who_node(const struct dt_who *who);
const char *dt_who_show(const struct dt_who *who); /* "unknown" for NULL */
/* The pid first, to find a process by it: "<0.90.0> shop_db". To be freed by g_free. */
char *dt_who_show_pid(const struct dt_who *who);
/* The same, with the node if there are several. */
char *dt_who_show_where(const struct dt_whos *whos, const struct dt_who *who);

/* Numbers of a process; DT_NO_VALUE if the recording does not have them. */
int64_t dt_who_number(const struct dt_who *who, enum dt_recorded_kind kind, uint64_t number);
int64_t dt_who_ns(const struct dt_who *who, enum dt_recorded_kind kind, int64_t ns);
int64_t dt_who_mailbox_max(const struct dt_who *who);
int64_t dt_who_queue_max(const struct dt_who *who);
int64_t dt_who_memory_max(const struct dt_who *who);
