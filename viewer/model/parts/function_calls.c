/*
 * Reconstructs the stacks of processes.
 *
 * With {return_trace}, each called function returns, even one that ends in a tail call: the VM
 * reports the returns from the top of the stack to its bottom. Without it, no return is reported:
 * such a frame ends at the next call, or when the process stops. A function that has not yet
 * returned could be of either kind. Once any function has returned, it is assumed to return.
 *
 * With the flag return_to, function_return names the function that is returned to. If
 * function_value is recorded, a return_to is an event without a value. Otherwise return_to is
 * detected by returns of functions that were never called.
 */
#include "model/parts/function_calls.h"

#include <stddef.h>
#include <string.h>

#include "model/parts/held_events.h"
#include "model/parts/call_stacks.h"

/* After more than this number of returns from functions that were never called, return_to is on. */
enum { STRANGE_MAX = 8 };

/* A function whose calls are traced without their returns. */
static bool is_plain(const struct node *node, const struct function *f) {
    return f->returns == 0 && !node->stacks->with_return_to &&
           (node->world->returns == 0 || f->calls > DT_FRAMES);
}

static void end_plain(struct stack *c, int64_t time) {
    struct frame *f;

    while ((f = dt_stack_top(c)) && is_plain(c->process->node, f->function)) {
        c->ended[c->next_ended++ % DT_ENDED_MAX] = f->function;
        dt_stack_pop(c, &(struct leave){.time = time, .left = DT_LEFT_UNKNOWN});
    }
}

/* Whether this is the late return of a frame that has already ended. */
static bool take_ended(struct stack *c, const struct function *f) {
    for (unsigned i = 0; i < DT_ENDED_MAX; i++)
        if (c->ended[i] == f) {
            c->ended[i] = NULL;
            return true;
        }
    return false;
}

/* -- Calls and returns -------------------------------------------------------------- */

static void call(struct process *p, const char *entry, int64_t time) {
    struct stack *c = dt_stack_of(p);

    end_plain(c, time);
    if (c->has_returned)
        p->node->stacks->is_followed_by_call = true;
    c->has_returned = false;
    c->last = dt_function_of(p->node->world, entry);
    c->last_time = time;
    dt_stack_push(c, c->last, time);
}

static void return_to(struct process *p, struct function *f, int64_t time) {
    struct stack *c = dt_stack_of(p);
    bool is_reported = c->has_returned;
    unsigned depth;

    c->has_returned = false;
    /* The return itself was reported just before. */
    if (is_reported)
        return;
    if (dt_stack_find(c, f, &depth))
        dt_stack_pop_above(c, depth + 1, time, DT_LEFT_RETURN);
    else if (c->frames->len)
        dt_stack_pop_above(c, c->frames->len - 1, time, DT_LEFT_RETURN);
}

static void return_from(struct process *p, struct function *f, const struct leave *leave) {
    struct stack *c = dt_stack_of(p);
    unsigned depth;

    f->returns++;
    p->node->world->returns++;
    c->has_returned = true;
    c->last = f;
    c->last_time = leave->time;
    if (c->deeper) {
        c->deeper--;
        return;
    }
    if (dt_stack_find(c, f, &depth)) {
        dt_stack_pop_above(c, depth + 1, leave->time,
                           leave->left == DT_LEFT_EXCEPTION ? DT_LEFT_EXCEPTION
                                                            : DT_LEFT_TAIL_CALL);
        dt_stack_pop(c, leave);
    } else if (!take_ended(c, f)) {
        dt_stack_leave_unknown(c, f, leave);
    }
}

/* A function_return without a value: a guess whether it is a return or a return_to. */
static void returned(struct process *p, const char *entry, int64_t time) {
    struct stacks *returns = p->node->stacks;
    struct function *f = dt_function_of(p->node->world, entry);
    struct stack *c = dt_stack_of(p);

    if (strcmp(entry, "undefined") == 0 ||
        (f->calls == 0 && !returns->is_followed_by_call && ++returns->strange > STRANGE_MAX))
        returns->with_return_to = true;
    if (returns->with_return_to &&
        (c->has_returned || f->calls == 0 || !dt_stack_top(c) || dt_stack_top(c)->function != f))
        return_to(p, f, time);
    else
        return_from(p, f, &(struct leave){.time = time, .left = DT_LEFT_RETURN});
}

static void return_without_value(struct process *p, const struct held *held) {
    p->node->stacks->with_return_to = true;
    return_to(p, dt_function_of(p->node->world, held->text), held->time);
}

static void exception_without_reason(struct process *p, const struct held *held) {
    return_from(
        p, dt_function_of(p->node->world, held->text),
        &(struct leave){.time = held->time, .left = DT_LEFT_EXCEPTION, .class = held->class});
}

/* -- Events ------------------------------------------------------------------------- */

/* The return of the first recorded value has already been handled. */
static bool is_late_value(const struct process *p, const char *entry, int64_t time) {
    const struct stack *c = p->stack;

    return !p->node->stacks->have_values && p->node->stacks->returns_are_recorded && c && c->last &&
           strcmp(c->last->name, entry) == 0 && time - c->last_time < DT_ONE_CALLBACK_NS;
}

static void left_with(struct process *p, const char *entry, const struct leave *leave,
                      held_ends *held) {
    struct leave at = *leave;
    bool is_late = is_late_value(p, entry, leave->time);

    p->node->stacks->have_values = true;
    if (is_late)
        return;
    if (!dt_unhold(p, entry, held, &at.time))
        dt_release(p);
    return_from(p, dt_function_of(p->node->world, entry), &at);
}

static void arguments(struct process *p, const struct dt_function_arguments *e, int64_t time) {
    struct frame *f = p->stack ? dt_stack_top(p->stack) : NULL;
    bool is_reported = f && !p->stack->deeper && strcmp(f->function->name, e->entry) == 0 &&
                       time - f->seen.begin < DT_ONE_CALLBACK_NS &&
                       p->node->stacks->calls_are_recorded;

    if (!is_reported && !p->node->stacks->calls_are_recorded) {
        call(p, e->entry, time);
        f = dt_stack_top(p->stack);
        is_reported = f && !p->stack->deeper;
    }
    if (is_reported)
        DT_EMIT(p->node->world, arguments, &f->seen, e->arguments);
}

/* The pid is the first field of all these events. */
#define HAS_PID_FIRST(probe) G_STATIC_ASSERT(offsetof(struct dt_##probe, pid) == 0)
HAS_PID_FIRST(function_call);
HAS_PID_FIRST(function_return);
HAS_PID_FIRST(function_exception);
HAS_PID_FIRST(function_arguments);
HAS_PID_FIRST(function_value);
HAS_PID_FIRST(function_reason);

static void returned_event(struct process *p, const struct dt_function_return *e, int64_t time) {
    p->node->stacks->returns_are_recorded = true;
    if (p->node->stacks->have_values)
        dt_hold(p, time, e->entry, "", return_without_value);
    else
        returned(p, e->entry, time);
}

static void raised_event(struct process *p, const struct dt_function_exception *e, int64_t time) {
    struct held held = {.time = time, .text = (char *)e->entry, .class = (char *)e->class};

    p->node->stacks->returns_are_recorded = true;
    if (p->node->stacks->have_values)
        dt_hold(p, time, e->entry, e->class, exception_without_reason);
    else
        exception_without_reason(p, &held);
}

void dt_calls_event(struct node *node, const struct dt_recorded *event) {
    const union dt_event *e = &event->fields;
    struct process *p = dt_process_of(node, e->function_call.pid);

    if (!p || p->has_exited)
        return;
    if (event->probe != DT_function_value && event->probe != DT_function_reason)
        dt_release(p);
    switch (event->probe) {
    case DT_function_call:
        node->stacks->calls_are_recorded = true;
        call(p, e->function_call.entry, event->time);
        break;
    case DT_function_arguments:
        arguments(p, &e->function_arguments, event->time);
        break;
    case DT_function_return:
        returned_event(p, &e->function_return, event->time);
        break;
    case DT_function_exception:
        raised_event(p, &e->function_exception, event->time);
        break;
    case DT_function_value:
        left_with(p, e->function_value.entry,
                  &(struct leave){.time = event->time,
                                  .left = DT_LEFT_RETURN,
                                  .value = e->function_value.value},
                  return_without_value);
        break;
    case DT_function_reason:
        left_with(p, e->function_reason.entry,
                  &(struct leave){.time = event->time,
                                  .left = DT_LEFT_EXCEPTION,
                                  .class = e->function_reason.class,
                                  .value = dt_world_reason(node->world, node->seen.is_elixir,
                                                           e->function_reason.reason)},
                  exception_without_reason);
        break;
    default:
        break;
    }
}

/* -- Hooks of the process ----------------------------------------------------------- */

/* Ends all frames and frees the stack. */
static void end_all(struct process *p, enum dt_left left) {
    if (!p->stack)
        return;
    dt_stack_pop_above(p->stack, 0, p->node->world->now, left);
    dt_stack_free(p);
}

void dt_calls_cut(struct process *p) {
    end_all(p, DT_LEFT_UNKNOWN);
}

void dt_calls_exited(struct process *p, const char *reason) {
    (void)reason;
    end_all(p, DT_LEFT_EXIT);
}

/* Frames end no earlier than the last call event of their process, which may be after `begin`. */
void dt_calls_lost(struct node *node, int64_t begin) {
    struct stacks *all = node->stacks;

    all->lost = MAX(all->lost, begin);
    while (all->known)
        dt_stack_lost(all->known, begin);
}

void dt_calls_scheduled(struct process *p, bool runs) {
    struct stack *c = p->stack;
    int64_t now = p->node->world->now;

    if (!c)
        return;
    if (!runs) {
        end_plain(c, now);
        c->has_stopped = true;
        c->stop = now;
    } else if (c->has_stopped) {
        c->stopped += now - c->stop;
        c->has_stopped = false;
    }
}

void dt_calls_new(struct node *node) {
    struct stacks *all = node->stacks = g_new0(struct stacks, 1);

    all->lost = INT64_MIN;
}

void dt_calls_free(struct node *node) {
    g_free(node->stacks);
}
