/* The processes with samples of their sockets: a bounded table. */
#pragma once

#include "actors/actors.h"
#include "summary/sample_series.h"

struct dt_socket_owner {
    struct dt_actor *owner;
    struct dt_series sockets;
    char *example; /* in the last sample */
};

struct dt_socket_owners {
    GHashTable *rows; /* of struct dt_actor; struct dt_socket_owner */
};
void dt_socket_owners_init(struct dt_socket_owners *owners);
void dt_socket_owners_free(struct dt_socket_owners *owners);
void dt_socket_owners_add(struct dt_socket_owners *owners, struct dt_actor *owner,
                          const struct dt_socket_sample *sample, int64_t time);
/* The process of that node whose sockets have grown by at least that number in that period, and
   most of all; NULL: none. */
const struct dt_socket_owner *dt_socket_owners_growing(const struct dt_socket_owners *owners,
                                                       const struct dt_seen_node *node,
                                                       const struct dt_series_growth *of,
                                                       int64_t least);
