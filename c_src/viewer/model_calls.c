/*
 * The stacks of processes.
 *
 * With {return_trace}, each function that is called returns, also one that ends in a tail call: the
 * VM tells their returns from the top of the stack to its bottom. Without it, a call never returns:
 * such a frame ends at the next call, or when the process stops. Of a function that has not
 * returned yet, nobody knows which it is: it counts as one that returns once any function has.
 *
 * With the flag return_to, function_return tells the function that is returned to. Where
 * function_value is recorded, that lacks a value; else it shows by functions that were never
 * called.
 */
#include <stddef.h>
#include <string.h>

#include "viewer/model_parts.h"

const char *const dt_left_names[] = {
    [DT_LEFT_RETURN] = "return",       [DT_LEFT_EXCEPTION] = "exception",
    [DT_LEFT_TAIL_CALL] = "tail_call", [DT_LEFT_EXIT] = "exit",
    [DT_LEFT_UNKNOWN] = "unknown",
};

enum {
    /* So many returns from functions that nobody called make them functions returned to. */
    STRANGE_MAX = 8,
    /* Calls that ended without a return, whose returns may come yet. */
    ENDED_MAX = 16,
};

struct frame {
    struct dt_frame seen;
    struct function *function;
    int64_t children; /* ns in callees */
    int64_t stopped;  /* of the process, at its begin */
    bool is_timed;    /* the process was known to run at its begin */
};

struct calls {
    struct calls *next, *previous; /* of the node, if it is there */
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
    struct function *ended[ENDED_MAX];
    unsigned next_ended;
};

static struct dt_model *model_of(const struct process *p) {
    return p->node->model;
}

static void list_calls(struct calls *c) {
    struct node *node = c->process->node;

    c->is_of_node = true;
    c->next = node->calls;
    if (c->next)
        c->next->previous = c;
    node->calls = c;
}

static void unlist_calls(struct calls *c) {
    *(c->previous ? &c->previous->next : &c->process->node->calls) = c->next;
    if (c->next)
        c->next->previous = c->previous;
    c->next = c->previous = NULL;
    c->is_of_node = false;
}

static struct calls *calls_of(struct process *p) {
    struct calls *c = p->calls;

    if (!c) {
        p->calls = c = g_new0(struct calls, 1);
        c->process = p;
        c->frames = g_ptr_array_new();
        c->since = p->seen.began == DT_NO_VALUE ? p->node->seen.first : p->seen.began;
    }
    if (!c->is_of_node) {
        c->since = MAX(c->since, p->node->calls_lost);
        list_calls(c);
    }
    return c;
}

static void free_calls(struct process *p) {
    struct calls *c = p->calls;

    if (!c)
        return;
    if (c->is_of_node)
        unlist_calls(c);
    g_ptr_array_free(c->frames, TRUE);
    g_free(c);
    p->calls = NULL;
}

static struct frame *top(const struct calls *c) {
    return c->frames->len ? c->frames->pdata[c->frames->len - 1] : NULL;
}

/* -- Frames ------------------------------------------------------------------------- */

static void push(struct calls *c, struct function *function, int64_t time) {
    struct process *p = c->process;
    struct frame *f;

    function->calls++;
    if (c->frames->len >= DT_FRAMES) {
        c->deeper++;
        return;
    }
    f = g_new0(struct frame, 1);
    f->function = function;
    f->stopped = c->stopped;
    f->is_timed = dt_runs(p->seen.state);
    f->seen = (struct dt_frame){.process = &p->seen,
                                .number = ++model_of(p)->frames,
                                .entry = function->name,
                                .depth = c->frames->len,
                                .begin = time,
                                .end = DT_NO_VALUE,
                                .class = "",
                                .value = "",
                                .has_return = function->returns > 0,
                                .waited = DT_NO_VALUE};
    g_ptr_array_add(c->frames, f);
    DT_TELL(model_of(p), call_begin, &f->seen);
}

struct leave {
    int64_t time;
    enum dt_left left;
    const char *class, *value;
};

static void pop(struct calls *c, const struct leave *leave) {
    struct frame *f = top(c), *caller;

    if (!f)
        return;
    g_ptr_array_set_size(c->frames, (gint)c->frames->len - 1);
    caller = top(c);
    f->seen.end = MAX(leave->time, f->seen.begin);
    f->seen.left = leave->left;
    f->seen.class = leave->class ? leave->class : "";
    f->seen.value = leave->value ? leave->value : "";
    f->seen.own = MAX(f->seen.end - f->seen.begin - f->children, 0);
    f->seen.has_return = f->function->returns > 0;
    if (f->is_timed)
        f->seen.waited =
            c->stopped - f->stopped + (c->has_stopped ? MAX(f->seen.end - c->stop, 0) : 0);
    if (caller)
        caller->children += f->seen.end - f->seen.begin;
    DT_TELL(model_of(c->process), call_end, &f->seen);
    g_free(f);
}

/* Those above number `depth` from the bottom. */
static void pop_above(struct calls *c, unsigned depth, int64_t time, enum dt_left left) {
    c->deeper = 0;
    while (c->frames->len > depth)
        pop(c, &(struct leave){.time = time, .left = left});
}

/* A function whose calls are traced without their returns. */
static bool is_plain(const struct node *node, const struct function *f) {
    return f->returns == 0 && !node->returns.with_return_to &&
           (node->model->returns == 0 || f->calls > DT_FRAMES);
}

static void end_plain(struct calls *c, int64_t time) {
    struct frame *f;

    while ((f = top(c)) && is_plain(c->process->node, f->function)) {
        c->ended[c->next_ended++ % ENDED_MAX] = f->function;
        pop(c, &(struct leave){.time = time, .left = DT_LEFT_UNKNOWN});
    }
}

/* Its return comes late: its frame has ended. */
static bool take_ended(struct calls *c, const struct function *f) {
    for (unsigned i = 0; i < ENDED_MAX; i++)
        if (c->ended[i] == f) {
            c->ended[i] = NULL;
            return true;
        }
    return false;
}

static bool find(const struct calls *c, const struct function *f, unsigned *depth) {
    for (unsigned i = c->frames->len; i > 0; i--)
        if (((struct frame *)c->frames->pdata[i - 1])->function == f) {
            *depth = i - 1;
            return true;
        }
    return false;
}

/* A frame that was entered before the recording, or while events were lost: it is told when it
   ends. It lay below all that are known. */
static void leave_unknown(struct calls *c, struct function *f, const struct leave *leave) {
    struct process *p = c->process;
    struct dt_frame told = {.process = &p->seen,
                            .number = ++model_of(p)->frames,
                            .entry = f->name,
                            .begin = c->since,
                            .end = leave->time,
                            .left = leave->left,
                            .class = leave->class ? leave->class : "",
                            .value = leave->value ? leave->value : "",
                            .inferred = true,
                            .has_return = true,
                            .own = 0,
                            .waited = DT_NO_VALUE};

    pop_above(c, 0, leave->time, DT_LEFT_TAIL_CALL);
    DT_TELL(model_of(p), call_begin, &told);
    DT_TELL(model_of(p), call_end, &told);
}

/* -- Calls and returns -------------------------------------------------------------- */

static void call(struct process *p, const char *entry, int64_t time) {
    struct calls *c = calls_of(p);

    end_plain(c, time);
    if (c->has_returned)
        p->node->returns.is_followed_by_call = true;
    c->has_returned = false;
    c->last = dt_function_of(model_of(p), entry);
    c->last_time = time;
    push(c, c->last, time);
}

static void return_to(struct process *p, struct function *f, int64_t time) {
    struct calls *c = calls_of(p);
    bool is_told = c->has_returned;
    unsigned depth;

    c->has_returned = false;
    /* The return itself was told just before. */
    if (is_told)
        return;
    if (find(c, f, &depth))
        pop_above(c, depth + 1, time, DT_LEFT_RETURN);
    else if (c->frames->len)
        pop_above(c, c->frames->len - 1, time, DT_LEFT_RETURN);
}

static void return_from(struct process *p, struct function *f, const struct leave *leave) {
    struct calls *c = calls_of(p);
    unsigned depth;

    f->returns++;
    model_of(p)->returns++;
    c->has_returned = true;
    c->last = f;
    c->last_time = leave->time;
    if (c->deeper) {
        c->deeper--;
        return;
    }
    if (find(c, f, &depth)) {
        pop_above(c, depth + 1, leave->time,
                  leave->left == DT_LEFT_EXCEPTION ? DT_LEFT_EXCEPTION : DT_LEFT_TAIL_CALL);
        pop(c, leave);
    } else if (!take_ended(c, f)) {
        leave_unknown(c, f, leave);
    }
}

/* A function_return without a value: which of both it is, nothing tells for sure. */
static void returned(struct process *p, const char *entry, int64_t time) {
    struct returns *returns = &p->node->returns;
    struct function *f = dt_function_of(model_of(p), entry);
    struct calls *c = calls_of(p);

    if (strcmp(entry, "undefined") == 0 ||
        (f->calls == 0 && !returns->is_followed_by_call && ++returns->strange > STRANGE_MAX))
        returns->with_return_to = true;
    if (returns->with_return_to &&
        (c->has_returned || f->calls == 0 || !top(c) || top(c)->function != f))
        return_to(p, f, time);
    else
        return_from(p, f, &(struct leave){.time = time, .left = DT_LEFT_RETURN});
}

static void return_without_value(struct process *p, const struct held *held) {
    p->node->returns.with_return_to = true;
    return_to(p, dt_function_of(model_of(p), held->text), held->time);
}

static void exception_without_reason(struct process *p, const struct held *held) {
    return_from(
        p, dt_function_of(model_of(p), held->text),
        &(struct leave){.time = held->time, .left = DT_LEFT_EXCEPTION, .class = held->class});
}

/* -- Events ------------------------------------------------------------------------- */

/* The first value that is recorded comes after its return has been told. */
static bool is_late_value(const struct process *p, const char *entry, int64_t time) {
    const struct calls *c = p->calls;

    return !p->node->returns.have_values && p->node->returns.are_recorded && c && c->last &&
           strcmp(c->last->name, entry) == 0 && time - c->last_time < DT_ONE_EVENT_NS;
}

static void left_with(struct process *p, const char *entry, const struct leave *leave,
                      held_ends *held) {
    struct leave at = *leave;
    bool is_late = is_late_value(p, entry, leave->time);

    p->node->returns.have_values = true;
    if (is_late)
        return;
    if (!dt_unhold(p, entry, held, &at.time))
        dt_release(p);
    return_from(p, dt_function_of(model_of(p), entry), &at);
}

static void arguments(struct process *p, const struct dt_function_arguments *e, int64_t time) {
    struct frame *f = p->calls ? top(p->calls) : NULL;
    bool is_told = f && strcmp(f->function->name, e->entry) == 0 &&
                   time - f->seen.begin < DT_ONE_EVENT_NS && p->node->calls_are_recorded;

    if (!is_told && !p->node->calls_are_recorded) {
        call(p, e->entry, time);
        f = top(p->calls);
        is_told = f && !p->calls->deeper;
    }
    if (is_told)
        DT_TELL(model_of(p), arguments, &f->seen, e->arguments);
}

/* All of these have the process first. */
#define HAS_PID_FIRST(probe) G_STATIC_ASSERT(offsetof(struct dt_##probe, pid) == 0)
HAS_PID_FIRST(function_call);
HAS_PID_FIRST(function_return);
HAS_PID_FIRST(function_exception);
HAS_PID_FIRST(function_arguments);
HAS_PID_FIRST(function_value);
HAS_PID_FIRST(function_reason);

static void returned_event(struct process *p, const struct dt_function_return *e, int64_t time) {
    p->node->returns.are_recorded = true;
    if (p->node->returns.have_values)
        dt_hold(p, time, e->entry, "", return_without_value);
    else
        returned(p, e->entry, time);
}

static void raised_event(struct process *p, const struct dt_function_exception *e, int64_t time) {
    struct held held = {.time = time, .text = (char *)e->entry, .class = (char *)e->class};

    p->node->returns.are_recorded = true;
    if (p->node->returns.have_values)
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
        node->calls_are_recorded = true;
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
                                  .value = e->function_reason.reason},
                  exception_without_reason);
        break;
    default:
        break;
    }
}

/* -- What else happens to the process ----------------------------------------------- */

void dt_calls_cut(struct process *p, int64_t time, enum dt_left left) {
    if (p->calls)
        pop_above(p->calls, 0, time, left);
    free_calls(p);
}

/* What a process did after the loss began was told already: its frames end after that. */
void dt_calls_lost(struct node *node, int64_t begin) {
    struct calls *c;

    node->calls_lost = MAX(node->calls_lost, begin);
    while ((c = node->calls)) {
        c->since = MAX(begin, c->last_time);
        pop_above(c, 0, c->since, DT_LEFT_UNKNOWN);
        memset(c->ended, 0, sizeof c->ended);
        c->has_returned = false;
        unlist_calls(c);
    }
}

void dt_calls_scheduled(struct process *p, bool runs) {
    struct calls *c = p->calls;
    int64_t now = model_of(p)->now;

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
