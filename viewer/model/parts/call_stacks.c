#include "model/parts/call_stacks.h"

#include <string.h>

static void list(struct stack *stack) {
    struct stacks *all = stack->process->node->stacks;

    stack->is_of_node = true;
    stack->next = all->known;
    if (stack->next)
        stack->next->previous = stack;
    all->known = stack;
}

static void unlist(struct stack *stack) {
    *(stack->previous ? &stack->previous->next : &stack->process->node->stacks->known) =
        stack->next;
    if (stack->next)
        stack->next->previous = stack->previous;
    stack->next = stack->previous = NULL;
    stack->is_of_node = false;
}

struct stack *dt_stack_of(struct process *p) {
    struct stack *stack = p->stack;

    if (!stack) {
        p->stack = stack = g_new0(struct stack, 1);
        stack->process = p;
        stack->frames = g_ptr_array_new();
        stack->since = p->seen.began == DT_NO_VALUE ? p->node->seen.first : p->seen.began;
    }
    if (!stack->is_of_node) {
        stack->since = MAX(stack->since, p->node->stacks->lost);
        list(stack);
    }
    return stack;
}

void dt_stack_free(struct process *p) {
    struct stack *stack = p->stack;

    if (!stack)
        return;
    if (stack->is_of_node)
        unlist(stack);
    g_ptr_array_free(stack->frames, true);
    g_free(stack);
    p->stack = NULL;
}

/* -- Frames ------------------------------------------------------------------------- */

struct frame *dt_stack_top(const struct stack *stack) {
    return stack->frames->len ? stack->frames->pdata[stack->frames->len - 1] : NULL;
}

bool dt_stack_find(const struct stack *stack, const struct function *function, unsigned *depth) {
    for (unsigned i = stack->frames->len; i > 0; i--)
        if (((struct frame *)stack->frames->pdata[i - 1])->function == function) {
            *depth = i - 1;
            return true;
        }
    return false;
}

void dt_stack_push(struct stack *stack, struct function *function, int64_t time) {
    struct process *p = stack->process;
    struct frame *f;

    function->calls++;
    if (stack->frames->len >= DT_FRAMES) {
        stack->deeper++;
        return;
    }
    f = g_new0(struct frame, 1);
    f->function = function;
    f->stopped = stack->stopped;
    f->is_timed = dt_runs(p->seen.state);
    f->seen = (struct dt_frame){.process = &p->seen,
                                .number = ++p->node->world->calls,
                                .entry = function->name,
                                .depth = stack->frames->len,
                                .begin = time,
                                .end = DT_NO_VALUE,
                                .class = "",
                                .value = "",
                                .has_return = function->returns > 0,
                                .waited = DT_NO_VALUE};
    g_ptr_array_add(stack->frames, f);
    DT_EMIT(p->node->world, call_begin, &f->seen);
}

void dt_stack_pop(struct stack *stack, const struct leave *leave) {
    struct frame *f = dt_stack_top(stack), *caller;

    if (!f)
        return;
    g_ptr_array_set_size(stack->frames, (int)stack->frames->len - 1);
    caller = dt_stack_top(stack);
    f->seen.end = MAX(leave->time, f->seen.begin);
    f->seen.left = leave->left;
    f->seen.class = leave->class ? leave->class : "";
    f->seen.value = leave->value ? leave->value : "";
    f->seen.own = MAX(f->seen.end - f->seen.begin - f->children, 0);
    f->seen.has_return = f->function->returns > 0;
    if (f->is_timed)
        f->seen.waited = stack->stopped - f->stopped +
                         (stack->has_stopped ? MAX(f->seen.end - stack->stop, 0) : 0);
    if (caller)
        caller->children += f->seen.end - f->seen.begin;
    DT_EMIT(stack->process->node->world, call_end, &f->seen);
    g_free(f);
}

void dt_stack_pop_above(struct stack *stack, unsigned depth, int64_t time, enum dt_left left) {
    stack->deeper = 0;
    while (stack->frames->len > depth)
        dt_stack_pop(stack, &(struct leave){.time = time, .left = left});
}

void dt_stack_leave_unknown(struct stack *stack, const struct function *function,
                            const struct leave *leave) {
    struct process *p = stack->process;
    struct dt_frame report = {.process = &p->seen,
                              .number = ++p->node->world->calls,
                              .entry = function->name,
                              .begin = stack->since,
                              .end = leave->time,
                              .left = leave->left,
                              .class = leave->class ? leave->class : "",
                              .value = leave->value ? leave->value : "",
                              .inferred = true,
                              .has_return = true,
                              .own = 0,
                              .waited = DT_NO_VALUE};

    dt_stack_pop_above(stack, 0, leave->time, DT_LEFT_TAIL_CALL);
    DT_EMIT(p->node->world, call_begin, &report);
    DT_EMIT(p->node->world, call_end, &report);
}

void dt_stack_lost(struct stack *stack, int64_t begin) {
    stack->since = MAX(begin, stack->last_time);
    dt_stack_pop_above(stack, 0, stack->since, DT_LEFT_UNKNOWN);
    memset(stack->ended, 0, sizeof stack->ended);
    stack->has_returned = false;
    unlist(stack);
}
