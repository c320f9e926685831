/*
 * Events that a second event may complete: message_receive by message_delivery, function_return by
 * function_value. If both are recorded, the first is held until the second arrives.
 */
#pragma once

#include "model/entities/processes.h"

/* Two probes of one callback fire at most this far apart. The kernel may preempt the thread between
   them, so the limit is long. */
enum { DT_ONE_CALLBACK_NS = 1000 * 1000 * 1000 };

struct held;
typedef void held_ends(struct process *process, const struct held *held);

struct held {
    int64_t time;
    char *text, *class;
    held_ends *ends; /* called if no second event completes it */
    GList *link;
};

void dt_hold(struct process *process, int64_t time, const char *text, const char *class,
             held_ends *ends);
/* If it holds an event with this text and callback, drops that event, sets `time` to its time and
   returns true. */
bool dt_unhold(struct process *process, const char *text, held_ends *ends, int64_t *time);
/* Calls `ends` for its held event: nothing will complete it. */
void dt_release(struct process *process);

void dt_held_new(struct node *node);
void dt_held_free(struct node *node);
void dt_held_late(struct node *node, int64_t now);
void dt_held_end(struct node *node);
