/*
 * A tree of frames. Until a process exits, its frames are below a frame of the process, `base`,
 * because its last name and its initial call are known only then. At the exit, they are merged into
 * the frame of that name, so short-lived processes do not fill the tree.
 */
#include "stacks/stacks.h"

#include <string.h>

#include "shared/json.h"

enum {
    /* Frames of the tree. Time of further frames goes to the frame "others". */
    FRAMES = 50000,
    /* Further frames for nodes and processes, which get their names even in a full tree. */
    NAMED = 10000,
};

static const char others_name[] = "others: the flame graph is full";

struct dt_stacks_frame {
    const char *name; /* one of dt_stacks.names */
    struct dt_stacks_frame *parent, *next, *first;
    const void *process; /* of a base frame, which has no name yet */
    uint64_t own;        /* ns */
};

/* A live process. */
struct running {
    struct dt_stacks_frame *base;
    GArray *stack; /* struct called */
    char *name;    /* its last registered name, as displayed */
};

struct called {
    uint64_t number;
    struct dt_stacks_frame *frame;
};

/* -- The tree --------------------------------------------------------------------------- */

static unsigned frame_hash(const void *of) {
    const struct dt_stacks_frame *frame = of;

    return g_direct_hash(frame->parent) * 31 + g_direct_hash(frame->name) * 7 +
           g_direct_hash(frame->process);
}

static gboolean frame_equal(const void *a, const void *b) {
    const struct dt_stacks_frame *x = a, *y = b;

    return x->parent == y->parent && x->name == y->name && x->process == y->process;
}

static const char *intern(struct dt_stacks *stacks, const char *name) {
    const char *known = g_hash_table_lookup(stacks->names, name);

    if (known)
        return known;
    char *copy = g_strdup(name);
    g_hash_table_add(stacks->names, copy);
    return copy;
}

static struct dt_stacks_frame *add(struct dt_stacks *stacks, const struct dt_stacks_frame *key) {
    struct dt_stacks_frame *frame = g_new0(struct dt_stacks_frame, 1);

    *frame = *key;
    /* Base frames are found only by process. */
    if (key->parent && !key->process) {
        frame->next = key->parent->first;
        key->parent->first = frame;
    }
    g_hash_table_add(stacks->frames, frame);
    return frame;
}

static struct dt_stacks_frame *find_or_add(struct dt_stacks *stacks,
                                           const struct dt_stacks_frame *key, unsigned most) {
    if (key->parent == stacks->others)
        return stacks->others;
    struct dt_stacks_frame *frame = g_hash_table_lookup(stacks->frames, key);
    if (frame)
        return frame;
    return g_hash_table_size(stacks->frames) < most ? add(stacks, key) : stacks->others;
}

static struct dt_stacks_frame *child_of(struct dt_stacks *stacks, struct dt_stacks_frame *parent,
                                        const char *name, unsigned most) {
    bool is_full = g_hash_table_size(stacks->frames) >= most;

    if (is_full && !g_hash_table_contains(stacks->names, name))
        return stacks->others;
    struct dt_stacks_frame key = {.parent = parent, .name = intern(stacks, name)};
    return find_or_add(stacks, &key, most);
}

static struct dt_stacks_frame *below(struct dt_stacks *stacks, struct dt_stacks_frame *parent,
                                     const char *name) {
    return child_of(stacks, parent, name, FRAMES);
}

/* The frame of a node or process. */
static struct dt_stacks_frame *named(struct dt_stacks *stacks, struct dt_stacks_frame *parent,
                                     const char *name) {
    return child_of(stacks, parent, name, FRAMES + NAMED);
}

static struct dt_stacks_frame *base_of(struct dt_stacks *stacks, const void *process) {
    struct dt_stacks_frame key = {.parent = stacks->root, .process = process};

    return find_or_add(stacks, &key, FRAMES + NAMED);
}

/* Merges `from` and its descendants into `to`. */
/* NOLINTNEXTLINE(misc-no-recursion): DT_FRAMES deep at most */
static void merge(struct dt_stacks *stacks, struct dt_stacks_frame *to,
                  struct dt_stacks_frame *from) {
    to->own += from->own;
    while (from->first) {
        struct dt_stacks_frame *child = from->first;

        from->first = child->next;
        g_hash_table_steal(stacks->frames, child);
        struct dt_stacks_frame key = {.parent = to, .name = child->name};
        struct dt_stacks_frame *same = g_hash_table_lookup(stacks->frames, &key);
        if (same) {
            merge(stacks, same, child);
            g_free(child);
            continue;
        }
        child->parent = to;
        child->next = to->first;
        to->first = child;
        g_hash_table_add(stacks->frames, child);
    }
}

/* -- Processes -------------------------------------------------------------------------- */

static void running_free(void *data) {
    struct running *running = data;

    g_array_free(running->stack, true);
    g_free(running->name);
    g_free(running);
}

static const char *node_name(const struct dt_process *process) {
    return process->node ? process->node->name : "unknown node";
}

/* The frame above the stacks of a live process. */
static struct dt_stacks_frame *start_of(struct dt_stacks *stacks,
                                        const struct dt_process *process) {
    if (stacks->by == DT_STACKS_BY_NONE)
        return stacks->root;
    bool is_node_named = process->node && *process->node->otp;
    if (stacks->by == DT_STACKS_BY_INITIAL && *process->initial && is_node_named)
        return named(stacks, named(stacks, stacks->root, node_name(process)), process->initial);
    return base_of(stacks, process);
}

static struct running *running_of(struct dt_stacks *stacks, struct dt_process *process) {
    struct running *running = g_hash_table_lookup(stacks->processes, process);

    if (!running) {
        running = g_new0(struct running, 1);
        running->stack = g_array_new(false, false, sizeof(struct called));
        running->base = start_of(stacks, process);
        g_hash_table_insert(stacks->processes, process, running);
    }
    if (*process->name && g_strcmp0(running->name, process->show) != 0) {
        g_free(running->name);
        running->name = g_strdup(process->show);
    }
    return running;
}

/* The final frame above the stacks of a process. */
static struct dt_stacks_frame *end_of(struct dt_stacks *stacks, const struct running *running,
                                      const struct dt_process *process) {
    struct dt_stacks_frame *node = named(stacks, stacks->root, node_name(process));

    if (stacks->by == DT_STACKS_BY_INITIAL)
        return named(stacks, node, *process->initial ? process->initial : "unknown initial call");
    return named(stacks, node, running->name ? running->name : process->show);
}

static void process_gone(void *data, struct dt_process *process) {
    struct dt_stacks *stacks = data;
    struct running *running = g_hash_table_lookup(stacks->processes, process);

    if (!running)
        return;
    struct dt_stacks_frame *base = running->base;
    if (base->process) {
        struct dt_stacks_frame *to = end_of(stacks, running, process);

        g_hash_table_steal(stacks->frames, base);
        merge(stacks, to, base);
        g_free(base);
    }
    g_hash_table_remove(stacks->processes, process);
}

/* -- Callbacks -------------------------------------------------------------------------- */

static void call_begin(void *data, struct dt_frame *frame) {
    struct dt_stacks *stacks = data;

    if (stacks->what != DT_STACKS_CALLS)
        return;
    struct running *running = running_of(stacks, frame->process);
    unsigned n = running->stack->len;
    struct dt_stacks_frame *parent =
        n ? g_array_index(running->stack, struct called, n - 1).frame : running->base;
    struct called called = {frame->number, below(stacks, parent, frame->entry)};
    g_array_append_val(running->stack, called);
}

static void call_end(void *data, struct dt_frame *frame) {
    struct dt_stacks *stacks = data;

    if (stacks->what != DT_STACKS_CALLS)
        return;
    struct running *running = running_of(stacks, frame->process);
    unsigned n = running->stack->len;
    while (n > 0 && g_array_index(running->stack, struct called, n - 1).number != frame->number)
        n--;
    if (n == 0)
        return;
    if (frame->own > 0)
        g_array_index(running->stack, struct called, n - 1).frame->own += (uint64_t)frame->own;
    g_array_set_size(running->stack, n - 1);
}

static void interval(void *data, const struct dt_interval *interval) {
    struct dt_stacks *stacks = data;

    if (stacks->what != DT_STACKS_WAITS || interval->state != DT_STATE_WAITING ||
        interval->process->kind != DT_PROCESS || interval->end <= interval->begin)
        return;
    struct running *running = running_of(stacks, interval->process);
    const char *out = *interval->out ? interval->out : "unknown function";
    below(stacks, running->base, out)->own += (uint64_t)(interval->end - interval->begin);
}

const struct dt_sink dt_stacks_collector = {
    .call_begin = call_begin,
    .call_end = call_end,
    .interval = interval,
    .process_gone = process_gone,
};

struct dt_stacks *dt_stacks_new(enum dt_stacks_what what, enum dt_stacks_by by) {
    struct dt_stacks *stacks = g_new0(struct dt_stacks, 1);

    stacks->what = what;
    stacks->by = by;
    stacks->frames = g_hash_table_new_full(frame_hash, frame_equal, g_free, NULL);
    stacks->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    stacks->processes = g_hash_table_new_full(NULL, NULL, NULL, running_free);
    stacks->root = add(stacks, &(struct dt_stacks_frame){.name = intern(stacks, "")});
    stacks->others = add(stacks, &(struct dt_stacks_frame){.parent = stacks->root,
                                                           .name = intern(stacks, others_name)});
    return stacks;
}

void dt_stacks_free(struct dt_stacks *stacks) {
    if (!stacks)
        return;
    g_hash_table_destroy(stacks->processes);
    g_hash_table_destroy(stacks->frames);
    g_hash_table_destroy(stacks->names);
    g_free(stacks);
}

/* -- Output ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    const struct dt_stacks_frame *x = *(struct dt_stacks_frame *const *)a;
    const struct dt_stacks_frame *y = *(struct dt_stacks_frame *const *)b;

    return strcmp(x->name, y->name);
}

static GPtrArray *children(const struct dt_stacks_frame *frame) {
    GPtrArray *sorted = g_ptr_array_new();

    for (struct dt_stacks_frame *child = frame->first; child; child = child->next)
        g_ptr_array_add(sorted, child);
    g_ptr_array_sort(sorted, by_name);
    return sorted;
}

/* NOLINTBEGIN(misc-no-recursion): DT_FRAMES deep at most, and the frames of node and process */
static void walk(const struct dt_stacks_frame *frame, GPtrArray *names, dt_stacks_visit *each,
                 void *data) {
    if (frame->own)
        each((const char *const *)names->pdata, names->len, frame->own, data);
    g_autoptr(GPtrArray) sorted = children(frame);
    for (unsigned i = 0; i < sorted->len; i++) {
        const struct dt_stacks_frame *child = g_ptr_array_index(sorted, i);

        g_ptr_array_add(names, (void *)child->name);
        walk(child, names, each, data);
        g_ptr_array_set_size(names, (int)names->len - 1);
    }
}

static void note_any(const char *const *names, unsigned depth, uint64_t ns, void *data) {
    (void)names, (void)depth, (void)ns;
    *(bool *)data = true;
}

bool dt_stacks_are_empty(const struct dt_stacks *stacks) {
    bool is_any = false;

    dt_stacks_each(stacks, note_any, &is_any);
    return !is_any;
}

void dt_stacks_remark(struct dt_stacks *stacks, const char *remark) {
    below(stacks, stacks->root, remark)->own = 1;
}

void dt_stacks_each(const struct dt_stacks *stacks, dt_stacks_visit *each, void *data) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    walk(stacks->root, names, each, data);
}

/* Returns the value. It is written last, so each frame is visited once. */
static uint64_t put(GString *to, const struct dt_stacks_frame *frame) {
    uint64_t value = frame->own;

    dt_json_open(to, NULL, '{');
    dt_json_text(to, "name", frame->name);
    dt_json_number(to, "own", (int64_t)frame->own);
    dt_json_open(to, "children", '[');
    g_autoptr(GPtrArray) sorted = children(frame);
    for (unsigned i = 0; i < sorted->len; i++) {
        const struct dt_stacks_frame *child = g_ptr_array_index(sorted, i);

        if (child->own || child->first)
            value += put(to, child);
    }
    dt_json_close(to, ']');
    dt_json_number(to, "value", (int64_t)value);
    dt_json_close(to, '}');
    return value;
}
/* NOLINTEND(misc-no-recursion) */

void dt_stacks_json(const struct dt_stacks *stacks, GString *to) {
    put(to, stacks->root);
}
