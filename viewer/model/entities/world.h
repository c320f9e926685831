/*
 * State that all nodes of a recording share.
 *
 *     entities/  objects: nodes, schedulers, processes with their names and links
 *     parts/     their activity: states, calls, messages, server calls, spans
 *     model.c    the driver: dispatches events, and defines the subscribers of each hook
 *
 * A struct whose counterpart in shared/model_events.h has the same name with the prefix dt_ has
 * that counterpart as its first member, `seen`.
 */
#pragma once

#include "model/entities/hooks.h"
#include "shared/sink.h"

struct world {
    const struct dt_sink *sink;
    void *of_sink;
    const struct dt_hooks *hooks;
    GPtrArray *nodes;
    GHashTable *places;    /* struct dt_place -> node */
    GHashTable *namesakes; /* name -> struct namesakes: nodes.c */
    struct node *last_node;
    GHashTable *functions;  /* text -> struct function; bounded by the code, so never pruned */
    uint64_t returns;       /* of all functions, including exceptions */
    uint64_t names;         /* version of the nodes' names, incremented on each change */
    uint64_t processes;     /* the last number assigned to a process */
    uint64_t earlier;       /* processes from before the recording that are gone */
    uint64_t earlier_named; /* those of them that have a name or an initial call */
    uint64_t calls, server_calls, messages; /* the last number assigned to each */
    unsigned schedulers;
    bool shows_contents; /* report reasons and log lines unchanged: shared/contents.h */
    GString *shown;      /* buffer for a text with hidden contents */
    GString *elixir;     /* buffer for a reason in Elixir's spelling */
    int64_t now;
};

/* A reason as reported to sinks; valid until the next call of either function. */
const char *dt_world_reason(struct world *world, bool is_elixir, const char *reason);
/* The same for a text of any length, such as a log line or a message, which may be no term. */
const char *dt_world_text(struct world *world, const char *text);

#define DT_EMIT(world, function, ...)                                                              \
    do {                                                                                           \
        if ((world)->sink->function)                                                               \
            (world)->sink->function((world)->of_sink, __VA_ARGS__);                                \
    } while (0)

/* A function of the recording, by its text: "lists:sort/1". */
struct function {
    uint64_t calls, returns;
    char name[];
};

struct function *dt_function_of(struct world *world, const char *recorded);
/* A copy of the text that lives as long as the world. */
const char *dt_function(struct world *world, const char *text);
