/*
 * Events that another one may complete: message_receive by message_delivery, function_return by
 * function_value. Where both are recorded, the first is held until the second comes.
 */
#ifndef DT_VIEWER_MODEL_PARTS_HELD_H
#define DT_VIEWER_MODEL_PARTS_HELD_H

#include "model/entities/processes.h"

/* Two probes fire for one event of the VM within one callback, so this soon after one another. */
enum { DT_ONE_EVENT_NS = 100 * 1000 };

struct held;
typedef void held_ends(struct process *process, const struct held *held);

struct held {
    int64_t time;
    char *text, *class;
    held_ends *ends; /* for one that is not completed */
    GList *link;
};

void dt_hold(struct process *process, int64_t time, const char *text, const char *class,
             held_ends *ends);
/* If it holds this text: drops that, and sets its time. */
bool dt_unhold(struct process *process, const char *text, held_ends *ends, int64_t *time);
/* Nothing will complete what it holds. */
void dt_release(struct process *process);

void dt_held_new(struct node *node);
void dt_held_free(struct node *node);
void dt_held_late(struct node *node, int64_t now);
void dt_held_end(struct node *node);

#endif
