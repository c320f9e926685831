/*
 * Who is who: what pictures keep of each process, also after the model has released it.
 *
 *     model -> dt_process, while it lives -> dt_who, as long as a table, list or lane refers to it
 *
 * A sink that uses this leaves `of_sink` of processes to it, so no table is searched; what the sink
 * hangs on a process is the `of_sink` of its dt_who. The summary counts in it.
 */
#ifndef DT_VIEWER_WHO_WHO_H
#define DT_VIEWER_WHO_WHO_H

#include "who/nodes.h"

/* What samples say of a process. */
struct dt_sampled {
    uint64_t count, rises;            /* of samples; of those that saw a longer queue than before */
    int64_t first, last;              /* times */
    uint64_t first_queue, last_queue; /* messages */
    uint64_t max_queue, max_memory;   /* bytes */
    int64_t still_since;              /* it has messages and has not run since; DT_NO_VALUE */
    int64_t longest_still;            /* ns */
    uint64_t still_queue;             /* at the end of that */
    bool was_suspended;               /* then */
};

/* A process, a port, or a sum: several processes with the same initial call, timers, another node.
 */
struct dt_who {
    unsigned references;
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
    void *of_sink; /* while it lives */

    int64_t began, ended;
    int64_t run, runnable, waiting, collecting; /* ns; `run` is time on a CPU */
    int64_t dirty_cpu;                          /* of `run`, on dirty CPU schedulers */
    int64_t dirty_io;                           /* not of `run` */
    int64_t longest_wait, longest_wait_at;
    uint64_t collections, sent, received, mailbox_max, bytes_out;
    uint64_t reached;           /* messages: those received, and those inferred */
    uint64_t call_events;       /* calls and returns */
    bool has_crashed;           /* it has exited, and that was a crash */
    struct dt_sampled *sampled; /* NULL: no sample; freed with it */
    struct dt_heap *heap;       /* of the summary; NULL: it was never large; freed with it */
    GArray *stack;              /* its calls that have not ended; freed with it */
};

struct dt_whos {
    struct dt_seen_nodes nodes;
    GHashTable *alive; /* each struct dt_who that is the of_sink of a process */
    GHashTable *sums;  /* each sum, by its node and its text */
};
void dt_whos_init(struct dt_whos *whos);
void dt_whos_free(struct dt_whos *whos);

/* NULL of NULL. */
struct dt_who *dt_who_of(struct dt_whos *whos, struct dt_process *process);
/* A sum by its text. */
struct dt_who *dt_who_sum(struct dt_whos *whos, struct dt_seen_node *node, const char *show);
/* The sum of those with the same initial call. */
struct dt_who *dt_who_kind(struct dt_whos *whos, struct dt_who *who);
void dt_who_learn_parent(struct dt_whos *whos, struct dt_who *who);
/* The process is gone: copies its texts. Returns the reference to it that the process had; NULL if
   it had none. */
struct dt_who *dt_who_gone(struct dt_whos *whos, struct dt_process *process);

struct dt_who *dt_who_keep(struct dt_who *who);
void dt_who_drop(struct dt_who *who);

/* The node's name; "" if it is unknown. */
const char *dt_who_node(const struct dt_who *who);
const char *dt_who_show(const struct dt_who *who); /* of NULL: "unknown" */
/* The pid first, so that a process can be found by it: "<0.90.0> shop_db". To be freed by g_free.
 */
char *dt_who_show_pid(const struct dt_who *who);
/* The same with its node, if there are several. */
char *dt_who_show_where(const struct dt_whos *whos, const struct dt_who *who);

/* Numbers of it; DT_NO_VALUE if the recording does not tell. */
int64_t dt_who_number(const struct dt_who *who, enum dt_told kind, uint64_t number);
int64_t dt_who_ns(const struct dt_who *who, enum dt_told kind, int64_t ns);
int64_t dt_who_mailbox_max(const struct dt_who *who);
int64_t dt_who_queue_max(const struct dt_who *who);
int64_t dt_who_memory_max(const struct dt_who *who);

#endif
