/*
 * A node's messages: what model_messages.c and model_early.c share.
 */
#ifndef DT_VIEWER_MODEL_MESSAGES_H
#define DT_VIEWER_MODEL_MESSAGES_H

#include "viewer/far.h"
#include "viewer/model_in_flight.h"

/* A message with a sequential trace token, from seq_trace_send to seq_trace_receive, which may be
   the second event of its delivery. */
struct token {
    uint64_t serial, from; /* the sender's number: each process counts for itself */
    char *label;
    struct message *message; /* NULL once it is delivered */
    GList *link;
};

/* A message that was sent just now and is in flight no more: the second of its events may follow.
 */
struct left {
    const struct dt_process *from;
    guint hash;
    int64_t time;
    bool by_seq_trace;       /* its first event was seq_trace_send, else message_send */
    struct message *message; /* of an early delivery: told when the next one is sent; else NULL */
};

struct messages {
    struct message *oldest, *youngest;
    struct list unaddressed; /* to names and aliases whose process is unknown */
    GHashTable *tokens;      /* struct token, by itself */
    GQueue tokens_by_age;
    unsigned in_flight;
    struct list early; /* deliveries of messages from other nodes whose send was not told yet */
    struct left left;
    bool are_delivered; /* some were */
    bool have_receives; /* message_receive or message_delivery is recorded */
    bool have_senders;  /* message_delivery is */
    bool have_tokens;   /* seq_trace_send is */
    /* The last message_receive while there was no message_delivery yet. */
    struct process *last_to;
    guint last_hash;
    int64_t last_time;
};

/* Who gets a message, and in which node. */
struct receiver {
    struct process *process;
    struct node *home;
    bool is_dead;
};

struct delivery {
    struct process *to, *from; /* `from` is NULL if unknown */
    struct node *node;         /* of the sender, if it is another one that is recorded; else NULL */
    const char *text, *timer;
    int64_t time;
    enum dt_matched how;
};

/* -- model_messages.c -- */
struct message *dt_message_new(struct node *home, struct node *sender_node, struct process *from,
                               struct process *p, const char *text);
/* Tells it as gone. */
void dt_message_end(struct node *node, struct message *m);
void dt_message_deliver(struct node *node, struct message *m, const struct delivery *d);

/* -- model_early.c -- */
/* A delivery from another node, of a message that is not in flight. */
void dt_early_add(struct node *node, const struct delivery *d);
/* Whether what is sent now was delivered before, by the receiver's clock: then it is told. */
bool dt_early_sent(struct node *node, struct process *from, const struct receiver *receiver,
                   const struct dt_message_send *event);
/* Tells the one that was sent last, which its seq_trace_send can't label any more. */
void dt_early_told(struct node *node);
/* Those whose send did not come. */
void dt_early_late(struct node *node, int64_t now);

#endif
