/*
 * What entities and parts tell one another: moments. The driver has the table of the functions that
 * hear of each, so whoever tells a moment names nobody, and no call runs up.
 */
#ifndef DT_VIEWER_MODEL_ENTITIES_MOMENTS_H
#define DT_VIEWER_MODEL_ENTITIES_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct node;
struct process;

/* The parts that have state of their own: that of a node or a process is in its `of`, and only the
   part knows what it is. */
enum dt_part {
    DT_PART_HELD,
    DT_PART_SCHEDULING,
    DT_PART_CALLS,
    DT_PART_SPANS,
    DT_PART_SERVER_CALLS,
    DT_PART_IN_FLIGHT,
    DT_PART_ANSWERS,
    DT_OF_PROCESS,
    /* Of nodes alone. */
    DT_PART_EARLY = DT_OF_PROCESS,
    DT_PART_TOKENS,
    DT_PART_SENDS,
    DT_PART_DELIVERIES,
    DT_OF_NODE
};

/* Functions that hear of one moment, in this order, up to NULL. */
enum { DT_HEARERS = 11 };
#define DT_HEARD_BY(moment, ...) void (*moment[DT_HEARERS])(__VA_ARGS__)

struct dt_moments {
    /* A node has become known; it is released. */
    DT_HEARD_BY(node_new, struct node *);
    DT_HEARD_BY(node_free, struct node *);
    /* Events were lost since `begin`. */
    DT_HEARD_BY(lost, struct node *, int64_t begin);
    /* Before each event of the node. */
    DT_HEARD_BY(late, struct node *, int64_t now);
    /* The recording ends: first for all nodes the one, then for all nodes the other. */
    DT_HEARD_BY(ending, struct node *);
    DT_HEARD_BY(end, struct node *);

    /* A process or port has become known; it is released. What is in its `of` then is freed. */
    DT_HEARD_BY(process_new, struct process *);
    DT_HEARD_BY(process_free, struct process *);
    /* One of the two below comes next. */
    DT_HEARD_BY(leaving, struct process *);
    DT_HEARD_BY(exited, struct process *, const char *reason);
    /* No more is known of it, as another one has its identifier or the recording ends. */
    DT_HEARD_BY(cut, struct process *);

    /* It runs, or has stopped. */
    DT_HEARD_BY(scheduled, struct process *, bool runs);
    /* Something reached it that makes a waiting process runnable. */
    DT_HEARD_BY(arrived, struct process *);
    /* A `receive ... after` of it has ended without a message. */
    DT_HEARD_BY(timed_out, struct process *);
    /* A message whose text is that of `node`. `from` and `to` may be NULL. `is_told`: its send was
       told, with its receiver. */
    DT_HEARD_BY(sent, struct node *, struct process *from, struct process *to, const char *text);
    DT_HEARD_BY(delivered, struct node *, struct process *from, struct process *to,
                const char *text, bool is_told);
};

#define DT_MOMENT(world, moment, ...)                                                              \
    do {                                                                                           \
        const struct dt_moments *moments_ = (world)->moments;                                      \
                                                                                                   \
        for (unsigned n_ = 0; n_ < DT_HEARERS && moments_->moment[n_]; n_++)                       \
            moments_->moment[n_](__VA_ARGS__);                                                     \
    } while (0)

#endif
