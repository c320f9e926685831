/* A message, from its send to its delivery. */
#pragma once

#include "model/entities/process.h"

/* The common properties of the messages in a chain of a list's index: message_list.h. */
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
    /* The search key: its text or, for a message between nodes, its dt_remote_key. */
    const char *key;
    unsigned hash;            /* of the key */
    bool is_remote;           /* sent by another node */
    struct node *sender_node; /* of a remote one */
    struct node *home;        /* the node it belongs to: the receiver's, if known */
    int64_t arrived;          /* time of a delivery that is not yet reported; DT_NO_VALUE */
    int64_t ran;       /* when its receiver first ran while its token was awaited, or DT_NO_VALUE */
    bool is_counted;   /* in the length of the receiver's mailbox */
    bool by_seq_trace; /* had its seq_trace_send, but not yet its message_send */
    struct token *token;
    char *label, *to_text;
    char *shown; /* its text as reported to sinks, if that differs from the recorded one */
    char text[];
};

/* The sequential trace token of a message, from seq_trace_send to seq_trace_receive, which may be
   the second event of the delivery. */
struct token {
    uint64_t serial, from; /* `from` is the sender's number: each process has its own counter */
    char *label;
    struct message *message; /* NULL once it is delivered */
    GList *link;
};

struct delivery {
    struct process *to, *from; /* `from` is NULL if unknown */
    struct node *node;         /* the sender's, if that is another recorded node; else NULL */
    const char *text, *timer;
    int64_t time;
    enum dt_matched how;
};

/* `from` and `to` are NULL if unknown. */
struct message *dt_message_new(struct node *home, struct node *sender_node, struct process *from,
                               struct process *to, const char *text);
/* Sets the receiver, unless it is already known. */
void dt_message_address(struct message *m, struct process *to);
/* Reports it as delivered, and as gone. */
void dt_message_deliver(struct node *node, struct message *m, const struct delivery *d);
/* Announces its delivery to the other parts, with the text in the form of the sender's node.
   `is_addressed`: the receiver was known when it was sent. */
void dt_message_emit(struct node *node, const struct message *m, bool is_addressed);
/* Reports it as gone, and frees it. */
void dt_message_end(struct node *node, struct message *m);

static inline struct process *dt_receiver(const struct message *m) {
    return (struct process *)m->seen.to;
}
