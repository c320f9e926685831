/*
 * Messages in flight: each is in the list of its receiver, or in that of the node's unaddressed
 * ones.
 *
 * Short lists are searched from their beginning. One that has become long has an index as well: a
 * receiver that does not keep up has as many messages in flight as a node may have.
 */
#ifndef DT_VIEWER_MODEL_IN_FLIGHT_H
#define DT_VIEWER_MODEL_IN_FLIGHT_H

#include "viewer/model_parts.h"

/* What the messages of a chain of the index have in common. */
enum dt_chain {
    DT_SAME_TEXT,
    DT_SAME_SENDER,
    DT_SAME_BOTH,
    DT_SAME_NODE, /* and text */
    DT_SAME_ENDS, /* and text: sender with its node, receiver */
    DT_CHAINS
};

struct token;

struct message {
    struct dt_message seen;
    struct message *next, *previous; /* in its list */
    struct message *younger, *older; /* of the node */
    struct {
        struct message *next, *previous;
        struct message *last; /* of the chain, in its first message */
    } chain[DT_CHAINS];
    /* By this it is found: its text or, of a message between nodes, what is equal of it in both. */
    const char *key;
    guint hash;               /* of the key */
    bool is_far;              /* sent by another node */
    struct node *sender_node; /* of a far one */
    struct node *home;        /* among whose messages it is: the receiver's, as far as known */
    int64_t arrived;          /* not told as delivered yet: model_messages.c; DT_NO_VALUE */
    bool by_seq_trace;        /* its seq_trace_send has come, its message_send not yet */
    struct token *token;
    char *label, *to_text;
    char text[];
};

void dt_in_flight_add(struct list *list, struct message *m);
void dt_in_flight_take_out(struct list *list, struct message *m);

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
struct message *dt_in_flight_find(const struct list *list, const struct dt_wanted *wanted);
/* The oldest of the same sender that was sent before `m`, which may be in no list; NULL. */
struct message *dt_in_flight_before(const struct list *list, const struct message *m);

#endif
