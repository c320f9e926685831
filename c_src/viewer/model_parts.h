/*
 * What the parts of the model share: the state that sinks do not see.
 *
 *     model.c          an event -> the part that it is for; the model's end
 *     model_nodes      nodes, schedulers, losses
 *     model_peers      nodes as other nodes know them
 *     model_processes  processes and ports: who they are, their names, links and exits
 *     model_scheduling their states
 *     model_calls      their stacks
 *     model_messages   messages from `sent` to `delivered`
 *     model_in_flight  lists of those between
 *     model_early      deliveries whose send is recorded later
 *     model_server_calls
 *     model_held       events that another one may complete
 *     model_spans
 *
 * A struct whose name is that of one in model.h has it as its first member `seen`.
 */
#ifndef DT_VIEWER_MODEL_PARTS_H
#define DT_VIEWER_MODEL_PARTS_H

#include "viewer/model.h"
#include "viewer/sink.h"

/* Two probes fire for one event of the VM within one callback, so this soon after one another. */
enum { DT_ONE_EVENT_NS = 100 * 1000 };

struct dt_model {
    const struct dt_sink *sink;
    void *of_sink;
    GPtrArray *nodes;
    GHashTable *places;    /* struct place -> node */
    GHashTable *namesakes; /* name -> how many nodes have it: model_nodes.c */
    struct node *last_node;
    GHashTable *functions; /* text -> struct function; as many as the code has, so never freed */
    uint64_t names;        /* counts what becomes known of nodes' names */
    uint64_t events, skipped;
    uint64_t processes, messages, frames, server_calls; /* numbers given */
    uint64_t returns;                                   /* of functions, exceptions included */
    unsigned schedulers;
    int64_t now;
    bool is_ended;
};

struct function {
    uint64_t calls, returns;
    char name[];
};

#define DT_TELL(model, function, ...)                                                              \
    do {                                                                                           \
        if ((model)->sink->function)                                                               \
            (model)->sink->function((model)->of_sink, __VA_ARGS__);                                \
    } while (0)

struct scheduler {
    struct dt_scheduler seen;
    struct process *runs; /* a process */
    struct process *port; /* a port, alone or for that process, which runs on after it */
};

/* What an event tells of its node: the VM's OS process or, without one, the trace. */
struct place {
    const char *hostname;
    int64_t vpid;
    uint64_t trace;
};

struct node {
    struct dt_node seen;
    struct dt_model *model;
    struct place place;
    char *name, *hostname, *otp;
    char *own_name;  /* of its identity, NULL if unknown; those of several nodes may be equal */
    char *bare_name; /* the same without quotes */
    int64_t identity_os_pid; /* 0 if unknown */
    GHashTable *peers;       /* number in its identifiers -> struct peer */
    GHashTable *peers_by_name;
    char *last_peer; /* a name that was looked up */
    uint64_t last_peer_names;
    struct node *last_peer_node;
    GHashTable *processes; /* struct key -> process or port */
    GHashTable *names;     /* registered name -> process */
    GHashTable *nobody;    /* names that were unregistered, and not registered again */
    GQueue exited;         /* processes that are not told as gone yet, oldest first */
    GQueue foreign;        /* processes of other nodes, those that were named last at the end */
    GHashTable *schedulers;
    struct scheduler *last_scheduler;
    GArray *losses;      /* times at which they began */
    GQueue held;         /* processes that hold an event, oldest first */
    struct calls *calls; /* of processes of which some are known since the last loss */
    int64_t calls_lost;  /* when that began */
    bool calls_are_recorded;
    struct returns {
        bool are_recorded, have_values;
        bool with_return_to;
        unsigned strange;         /* returns from functions that were never called */
        bool is_followed_by_call; /* one was, at once, so there is no return_to */
    } returns;
    struct messages *messages;
    struct server_calls *server_calls;
    struct spans *spans;
};

/* An identifier as numbers: of <0.90.1>, #Port<0.5> or <9234.99.0>. */
struct key {
    uint64_t kind_and_node;
    uint64_t number;
};

/* Messages in flight to one receiver, oldest first: model_in_flight.h. */
struct list {
    struct message *first, *last;
    unsigned length;
    struct index *index;
};

struct held;
typedef void held_ends(struct process *process, const struct held *held);

struct held {
    int64_t time;
    char *text, *class;
    held_ends *ends; /* for one that is not completed */
    GList *link;
};

struct process {
    struct dt_process seen;
    unsigned references;
    struct key key;
    struct node *node;
    char *pid, *name, *label, *show; /* what `seen` shows, if it is not empty */
    char *group;
    const char *registered; /* the name by which it is found now: a key of the node's names; NULL */

    bool has_exited;
    bool is_known; /* in the node's table: its identifier stands for it */
    bool parent_unlinked;
    struct process *children, *next, *previous; /* siblings */
    GHashTable *links;

    /* model_scheduling */
    const char *in, *out;
    enum dt_state before_gc;
    bool is_major;
    bool is_displaced; /* another process has run where it ran, so it may have stopped */
    unsigned losses;   /* of the node's: those that are reflected in `state` */

    struct held *held;

    /* model_calls */
    struct calls *calls;

    /* model_messages */
    struct list in_flight;

    /* model_server_calls: pending ones, oldest first */
    GQueue calls_of_others, calls_by_itself;
    int64_t serves_since; /* when it began with those of others; DT_NO_VALUE if it has not */

    GQueue spans;   /* open ones, the oldest last */
    GList *foreign; /* of another node: its place in the node's */
};

/* -- model.c -- */
/* The same text, which lives as long as the model, for names of functions. */
const char *dt_function(struct dt_model *model, const char *text);
struct function *dt_function_of(struct dt_model *model, const char *text);

/* -- model_nodes.c -- */
void dt_nodes_new(struct dt_model *model);
void dt_nodes_free(struct dt_model *model);
struct node *dt_node_of(struct dt_model *model, const struct dt_recorded *event);
void dt_node_named(struct node *node, const char *name, const char *otp);
/* NULL if the event does not tell. */
struct scheduler *dt_scheduler_of(struct node *node, const struct dt_recorded *event);

/* -- model_peers.c -- */
void dt_peers_new(struct node *node);
void dt_node_identity(struct node *node, const struct dt_node_identity *event);
/* The recorded node with this number in identifiers of `node`, which is 0; NULL. */
struct node *dt_peer(struct node *node, uint64_t number);
/* Another recorded node; NULL. */
struct node *dt_peer_named(struct node *node, const char *name);
/* The recorded node of a pid, port or reference; NULL. */
struct node *dt_home(struct node *node, const char *identifier);
void dt_peers_free(struct node *node);

/* -- model_processes.c -- */
void dt_processes_new(struct node *node);
bool dt_is_identifier(const char *text);
/* The pid that the VM names where it is a process that would be named: as the caller of a port
   that a driver controls, and as the receiver of that port's answer. */
bool dt_is_nobody(const char *text);
/* The process or port of an identifier, which becomes known by this if it was not. NULL if the
   text is none, or nobody's. */
struct process *dt_process_of(struct node *node, const char *identifier);
/* The same; one of another recorded node is that node's process. */
struct process *dt_process_anywhere(struct node *node, const char *identifier);
/* Another one that has its identifier, since it has exited. */
struct process *dt_process_again(struct process *process);
/* By a registered name; NULL. */
struct process *dt_process_named(struct node *node, const char *name);
void dt_process_event(struct node *node, const struct dt_recorded *event);
void dt_process_ref(struct process *process);
void dt_process_unref(struct process *process);
/* Releases the oldest that have exited or are of other nodes. Between events: a handler may hold
   any of them. */
void dt_processes_forget(struct node *node);
void dt_processes_end(struct node *node);
void dt_processes_free(struct node *node);

/* -- model_scheduling.c -- */
void dt_scheduling_event(struct node *node, const struct dt_recorded *event);
/* Something reached it that makes a waiting process runnable. */
void dt_arrived(struct process *process);
void dt_state_exiting(struct process *process);
/* A loss began: what was known ends there. */
void dt_state_settle(struct process *process);
void dt_state_end(struct process *process, bool is_open);
/* No scheduler runs it. */
void dt_state_leave(struct process *process);

/* -- model_held.c -- */
void dt_hold(struct process *process, int64_t time, const char *text, const char *class,
             held_ends *ends);
/* If it holds this text: drops that, and sets its time. */
bool dt_unhold(struct process *process, const char *text, held_ends *ends, int64_t *time);
/* Nothing will complete what it holds. */
void dt_release(struct process *process);
void dt_release_late(struct node *node, int64_t now);

/* -- model_calls.c -- */
void dt_calls_event(struct node *node, const struct dt_recorded *event);
/* Ends all frames, and forgets what is known of its calls. */
void dt_calls_cut(struct process *process, int64_t time, enum dt_left left);
void dt_calls_lost(struct node *node, int64_t begin);
/* It runs, or has stopped. */
void dt_calls_scheduled(struct process *process, bool runs);

/* -- model_messages.c -- */
void dt_messages_new(struct node *node);
void dt_messages_event(struct node *node, const struct dt_recorded *event);
/* Tells what nothing will complete. */
void dt_messages_late(struct node *node, int64_t now);
void dt_messages_end(struct node *node);
void dt_messages_free(struct node *node);
void dt_messages_lost(struct node *node);

/* -- model_server_calls.c -- */
void dt_server_calls_new(struct node *node);
/* The process whose alias this is, as far as a call is pending that uses it; NULL. */
struct process *dt_alias(struct node *node, const char *text);
void dt_server_calls_sent(struct node *node, struct process *from, struct process *to,
                          const char *text);
void dt_server_calls_delivered(struct node *node, struct process *from, struct process *to,
                               const char *text);
void dt_server_calls_exit(struct process *process, const char *reason);
/* A `receive ... after` of the process has timed out. */
void dt_server_calls_timeout(struct process *process);
void dt_server_calls_end(struct node *node);
void dt_server_calls_free(struct node *node);

/* -- model_spans.c -- */
void dt_spans_new(struct node *node);
void dt_spans_event(struct node *node, const struct dt_recorded *event);
void dt_spans_exit(struct node *node, struct process *process);
void dt_spans_end(struct node *node);
void dt_spans_free(struct node *node);

#endif
