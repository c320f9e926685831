/* What stopped processes wait for: the last `process_wait` of each. */
#pragma once

#include "actors/actors.h"

struct dt_process_wait;

struct dt_wait {
    struct dt_actor *actor;
    struct dt_actor *target; /* what it waits for; NULL: unknown, or not in the recording */
    char *target_text;       /* as recorded, "" if unknown */
    char *kind;              /* "call", "socket", ...; "" for any message */
    uint64_t callers;        /* processes that wait for it in a call, as far as they were counted */
    int64_t since, last;     /* the first and the last event with this target */
};

struct dt_waits {
    GHashTable *rows; /* struct dt_actor -> struct dt_wait */
};
void dt_waits_init(struct dt_waits *waits);
void dt_waits_free(struct dt_waits *waits);

/* Notes an event. `target` is NULL if its text does not name a process of the recording. */
void dt_waits_add(struct dt_waits *waits, struct dt_actor *actor, struct dt_actor *target,
                  const struct dt_process_wait *event, int64_t time);
/* A recorded call that has not ended is what its caller waits for. */
void dt_waits_called(struct dt_waits *waits, struct dt_actor *caller, struct dt_actor *server);
/* NULL if it has no row. */
const struct dt_wait *dt_waits_of(const struct dt_waits *waits, const struct dt_actor *actor);
