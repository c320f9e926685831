/* Finds the receiver of a message, and its node, from the text that the sender uses for it. */
#pragma once

#include "model/entities/process.h"

struct receiver {
    struct process *process; /* NULL if unknown */
    struct node *home;
    bool is_dead;
};

struct receiver dt_receiver_of(struct node *sender_node, const char *text);
