/* Finds the receiver of a message, and its node, from the text that the sender uses for it. */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_RECEIVER_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_RECEIVER_H

#include "model/entities/process.h"

struct receiver {
    struct process *process; /* NULL if unknown */
    struct node *home;
    bool is_dead;
};

struct receiver dt_receiver_of(struct node *sender_node, const char *text);

#endif
