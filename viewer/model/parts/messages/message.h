/* A message, from its send to its delivery. */
#ifndef DT_VIEWER_MODEL_PARTS_MESSAGES_MESSAGE_H
#define DT_VIEWER_MODEL_PARTS_MESSAGES_MESSAGE_H

#include "model/entities/process.h"

/* What the messages of a chain of a list's index have in common: list.h. */
enum dt_chain {
    DT_SAME_TEXT,
    DT_SAME_SENDER,
    DT_SAME_BOTH,
    DT_SAME_NODE, /* and text */
    DT_SAME_ENDS, /* and text: sender with its node, receiver */
    DT_CHAINS
};

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
    int64_t arrived;          /* delivered then, but not told as that yet; DT_NO_VALUE */
    bool by_seq_trace;        /* its seq_trace_send has come, its message_send not yet */
    struct token *token;
    char *label, *to_text;
    char *shown; /* its text as sinks show it, if that is not the recorded one */
    char text[];
};

/* Its sequential trace token, from seq_trace_send to seq_trace_receive, which may be the second
   event of its delivery. */
struct token {
    uint64_t serial, from; /* the sender's number: each process counts for itself */
    char *label;
    struct message *message; /* NULL once it is delivered */
    GList *link;
};

struct delivery {
    struct process *to, *from; /* `from` is NULL if unknown */
    struct node *node;         /* of the sender, if it is another one that is recorded; else NULL */
    const char *text, *timer;
    int64_t time;
    enum dt_matched how;
};

/* `from` and `to` are NULL if unknown. */
struct message *dt_message_new(struct node *home, struct node *sender_node, struct process *from,
                               struct process *to, const char *text);
/* Who gets it, unless that is known. */
void dt_message_address(struct message *m, struct process *to);
/* Tells it as delivered, and as gone. */
void dt_message_deliver(struct node *node, struct message *m, const struct delivery *d);
/* That its text has reached the receiver: it is as the sender's node wrote it. `is_addressed`: the
   receiver was known when it was sent. */
void dt_message_tell(struct node *node, const struct message *m, bool is_addressed);
/* Tells it as gone. */
void dt_message_end(struct node *node, struct message *m);

static inline struct process *dt_receiver(const struct message *m) {
    return (struct process *)m->seen.to;
}

#endif
