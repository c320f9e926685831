/*
 * Hooks between entities and parts. The driver has the table of subscribers of
 * each hook, so lower layers never call upper layers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;
struct process;

/* The subscribers of a hook, in calling order, terminated by NULL. */
enum { DT_SUBSCRIBERS = 15 };
#define DT_HOOK(hook, ...) void (*hook[DT_SUBSCRIBERS])(__VA_ARGS__)

struct dt_hooks {
    /* A node is new; a node is freed. */
    DT_HOOK(node_new, struct node *);
    DT_HOOK(node_free, struct node *);
    /* Events were lost from `begin` on. */
    DT_HOOK(lost, struct node *, int64_t begin);
    /* Before each event of the node. */
    DT_HOOK(late, struct node *, int64_t now);
    /* The recording ends: `ending` is called for all nodes, then `end` for all nodes. */
    DT_HOOK(ending, struct node *);
    DT_HOOK(end, struct node *);

    /* A process or port is new; it is freed. After process_free, the state of the parts is
       freed. */
    DT_HOOK(process_new, struct process *);
    DT_HOOK(process_free, struct process *);
    /* Before `exited` or `cut`. */
    DT_HOOK(leaving, struct process *);
    DT_HOOK(exited, struct process *, const char *reason);
    /* Its data ends, because its identifier is reused or the recording ends. */
    DT_HOOK(cut, struct process *);

    /* It started or stopped running. */
    DT_HOOK(scheduled, struct process *, bool runs);
    /* A message or signal reached it that makes a waiting process runnable. */
    DT_HOOK(arrived, struct process *);
    /* Its `receive ... after` ended without a message. */
    DT_HOOK(timed_out, struct process *);
    /* A message, with its text in the form of `node`. `from` and `to` may be NULL. `is_reported`:
       its send was reported, with its receiver. */
    DT_HOOK(sent, struct node *, struct process *from, struct process *to, const char *text);
    DT_HOOK(delivered, struct node *, struct process *from, struct process *to, const char *text,
            bool is_reported);
};

#define DT_RUN_HOOKS(world, hook, ...)                                                             \
    do {                                                                                           \
        const struct dt_hooks *hooks_ = (world)->hooks;                                            \
                                                                                                   \
        for (unsigned n_ = 0; n_ < DT_SUBSCRIBERS && hooks_->hook[n_]; n_++)                       \
            hooks_->hook[n_](__VA_ARGS__);                                                         \
    } while (0)
