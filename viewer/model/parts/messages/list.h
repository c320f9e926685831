/*
 * A list of messages, oldest first.
 *
 * Short lists are searched from their beginning. One that has become long has an index as well: a
 * receiver that does not keep up has as many messages in flight as a node may have.
 */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_LIST_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_LIST_H

#include "model/parts/messages/message.h"

struct list {
    struct message *first, *last;
    unsigned length;
    struct index *index;
};

void dt_message_list_add(struct list *list, struct message *m);
void dt_message_list_take_out(struct list *list, struct message *m);

/* What is looked for: `from` is NULL for any sender, `node` for any other node. With `to`, it has
   exactly this sender, NULL if unknown, and this receiver. */
struct dt_wanted {
    struct dt_process *from, *to;
    struct node *node;
    const char *key;
    bool is_far;
    int64_t time; /* sent no later */
};

/* The oldest one; NULL. */
struct message *dt_message_list_find(const struct list *list, const struct dt_wanted *wanted);
/* The oldest of the same sender that was sent before `m`, which may be in no list; NULL. */
struct message *dt_message_list_before(const struct list *list, const struct message *m);

#endif
