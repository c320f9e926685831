/* The stacks of processes, on which function_calls.c begins and ends frames. */
#pragma once

#include "model/entities/process.h"

/* The number of recent frames that ended without a return, but whose return may still follow. */
enum { DT_ENDED_MAX = 16 };

struct frame {
    struct dt_frame seen;
    struct function *function;
    int64_t children; /* ns in callees */
    int64_t stopped;  /* `stopped` of the stack at its begin */
    bool is_timed;    /* the process was known to run at its begin */
};

/* Of a process. */
struct stack {
    struct stack *next, *previous; /* in the node's list, if it is listed */
    bool is_of_node;               /* listed: it has had calls since the last loss */
    struct process *process;
    GPtrArray *frames;
    unsigned deeper;
    int64_t since; /* calls before this time are unknown */

    bool has_stopped;
    int64_t stop, stopped; /* when it last stopped; total ns stopped */

    bool has_returned; /* the last call event was a return */
    struct function *last;
    int64_t last_time;
    struct function *ended[DT_ENDED_MAX];
    unsigned next_ended;
};

/* Of a node. */
struct stacks {
    struct stack *known; /* the list of stacks that have had calls since the last loss */
    int64_t lost;        /* when the last loss began */
    bool calls_are_recorded;
    bool returns_are_recorded;
    bool have_values;         /* function_value or function_reason is recorded */
    bool with_return_to;      /* function_return names functions that are returned to */
    unsigned strange;         /* returns from functions that were never called */
    bool is_followed_by_call; /* a call came right after a return, so return_to is off */
};

/* How a frame ends. NULL texts are unknown. */
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
/* Pops the frames whose depth is `depth` or more. */
void dt_stack_pop_above(struct stack *stack, unsigned depth, int64_t time, enum dt_left left);
/* Reports a frame at its end that was entered before the recording, or while events were lost. It
   was below all known frames. */
void dt_stack_leave_unknown(struct stack *stack, const struct function *function,
                            const struct leave *leave);
