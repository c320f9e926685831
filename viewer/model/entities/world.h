/*
 * What all nodes of a recording share.
 *
 *     entities/  what exists: nodes, schedulers, processes with their names and links
 *     parts/     what it does: states, calls, messages, server calls, spans
 *     model.c    the driver: for whom an event is, and who hears of a moment
 *
 * A struct whose name is that of one in shared/told.h has it as its first member `seen`.
 */
#ifndef DT_VIEWER_MODEL_ENTITIES_WORLD_H
#define DT_VIEWER_MODEL_ENTITIES_WORLD_H

#include "model/entities/moments.h"
#include "shared/sink.h"

struct world {
    const struct dt_sink *sink;
    void *of_sink;
    const struct dt_moments *moments;
    GPtrArray *nodes;
    GHashTable *places;    /* struct place -> node */
    GHashTable *namesakes; /* name -> how many nodes have it: nodes.c */
    struct node *last_node;
    GHashTable *functions;  /* text -> struct function; as many as the code has, so never freed */
    uint64_t returns;       /* of all functions, exceptions included */
    uint64_t names;         /* counts what becomes known of nodes' names */
    uint64_t processes;     /* numbers given */
    uint64_t earlier;       /* processes from before the recording that are gone */
    uint64_t earlier_named; /* of these */
    uint64_t numbers[DT_OF_NODE]; /* given by the parts */
    unsigned schedulers;
    bool shows_contents; /* of reasons and log lines: shared/contents.h */
    GString *shown;      /* the text that is shown of one */
    int64_t now;
};

/* A reason as sinks show it; valid until the next one. */
const char *dt_world_reason(struct world *world, const char *reason);
/* The same for a text of any length: a line of the log, a message. */
const char *dt_world_text(struct world *world, const char *text);

#define DT_TELL(world, function, ...)                                                              \
    do {                                                                                           \
        if ((world)->sink->function)                                                               \
            (world)->sink->function((world)->of_sink, __VA_ARGS__);                                \
    } while (0)

/* `sink`, its data and `moments` live longer than the world. */
struct world *dt_world_new(const struct dt_sink *sink, void *of_sink,
                           const struct dt_moments *moments);
void dt_world_free(struct world *world);

#endif
