/* The ports with samples of their output queues: a bounded table. */
#pragma once

#include "actors/actors.h"

/* A port. */
struct dt_port_queue {
    struct dt_actor *port;
    uint64_t queue; /* bytes, in the last sample */
    int64_t since;  /* time of the first of the samples in a row, up to the last one, before which
                       no byte has left the queue; DT_NO_VALUE: none */
    int64_t last;   /* time of the last sample */
};

struct dt_port_queues {
    GHashTable *rows; /* of struct dt_actor; struct dt_port_queue */
};
void dt_port_queues_init(struct dt_port_queues *queues);
void dt_port_queues_free(struct dt_port_queues *queues);
void dt_port_queues_add(struct dt_port_queues *queues, struct dt_actor *port,
                        const struct dt_port_sample *sample, int64_t time);
/* The ports (struct dt_port_queue), the longest queue first, to be freed. */
GPtrArray *dt_port_queues_by_length(const struct dt_port_queues *queues);
