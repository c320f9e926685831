/* The stacks of processes: frames that begin and end. What makes them begin and end: calls.c. */
#ifndef DT_VIEWER_MODEL_PARTS_STACKS_H
#define DT_VIEWER_MODEL_PARTS_STACKS_H

#include "model/entities/functions.h"
#include "model/entities/process.h"

/* Calls that ended without a return, whose returns may come yet. */
enum { DT_ENDED_MAX = 16 };

struct frame {
    struct dt_frame seen;
    struct function *function;
    int64_t children; /* ns in callees */
    int64_t stopped;  /* of the process, at its begin */
    bool is_timed;    /* the process was known to run at its begin */
};

/* Of a process. */
struct stack {
    struct stack *next, *previous; /* of the node, if it is there */
    bool is_of_node;               /* something is known since the last loss */
    struct process *process;
    GPtrArray *frames;
    unsigned deeper;
    int64_t since; /* what was called before is unknown */

    bool has_stopped;
    int64_t stop, stopped; /* when; for how long all in all */

    bool has_returned; /* the last event of calls was a return */
    struct function *last;
    int64_t last_time;
    struct function *ended[DT_ENDED_MAX];
    unsigned next_ended;
};

/* Of a node. */
struct stacks {
    struct stack *known; /* those of which something is known since the last loss */
    int64_t lost;        /* when that began */
    bool calls_are_recorded;
    bool returns_are_recorded;
    bool have_values;         /* so are function_value and function_reason */
    bool with_return_to;      /* function_return tells functions that are returned to */
    unsigned strange;         /* returns from functions that were never called */
    bool is_followed_by_call; /* one was, at once, so there is no return_to */
};

static inline struct stacks *dt_stacks(const struct node *node) {
    return node->of[DT_PART_CALLS];
}

/* NULL before its first call. */
static inline struct stack *dt_stack(const struct process *process) {
    return process->of[DT_PART_CALLS];
}

/* How a frame ends. Texts that are NULL are unknown. */
struct leave {
    int64_t time;
    enum dt_left left;
    const char *class, *value;
};

struct stack *dt_stack_of(struct process *process);
void dt_stack_free(struct process *process);
void dt_stack_lost(struct stack *stack, int64_t begin);

struct frame *dt_stack_top(const struct stack *stack);
bool dt_stack_find(const struct stack *stack, const struct function *function, unsigned *depth);
void dt_stack_push(struct stack *stack, struct function *function, int64_t time);
void dt_stack_pop(struct stack *stack, const struct leave *leave);
/* Those above number `depth` from the bottom. */
void dt_stack_pop_above(struct stack *stack, unsigned depth, int64_t time, enum dt_left left);
/* A frame that was entered before the recording, or while events were lost: it is told when it
   ends. It lay below all that are known. */
void dt_stack_leave_unknown(struct stack *stack, const struct function *function,
                            const struct leave *leave);

#endif
