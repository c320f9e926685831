/*
 * A list of messages, oldest first.
 *
 * Short lists are searched linearly. Long lists have an index, because a receiver that does not
 * keep up may have all messages in flight of its node.
 */
#pragma once

#include "model/parts/messages/message.h"

struct list {
    struct message *first, *last;
    unsigned length;
    struct index *index;
};

void dt_message_list_add(struct list *list, struct message *m);
void dt_message_list_take_out(struct list *list, struct message *m);

/* Search criteria. `from` is NULL for any sender, `node` is NULL for any other node. If `to` is
   set, the message must have exactly this sender (NULL means unknown) and this receiver. */
struct dt_wanted {
    struct dt_process *from, *to;
    struct node *node;
    const char *key;
    bool is_remote;
    int64_t time; /* the latest time of the send */
};

/* The oldest match; NULL if none. */
struct message *dt_message_list_find(const struct list *list, const struct dt_wanted *wanted);
/* The oldest message of the same sender that was sent before `m`; NULL if none. `m` need not be in
   the list. */
struct message *dt_message_list_before(const struct list *list, const struct message *m);
