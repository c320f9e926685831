/*
 * Requests that sequential tracing follows, from process to process and from node to node: one row
 * per label.
 */
#pragma once

#include "actors/actors.h"

/* Messages of one label. */
struct dt_request {
    char *label;
    uint64_t messages, between_nodes;
    GHashTable *processes; /* numbers */
    GPtrArray *nodes;      /* struct dt_seen_node, in the order of the request */
    int64_t begin, end;
};

struct dt_requests {
    GHashTable *rows;  /* by label */
    uint64_t left_out; /* messages of labels beyond the bound */
};
void dt_requests_init(struct dt_requests *requests);
void dt_requests_free(struct dt_requests *requests);
void dt_requests_add(struct dt_requests *requests, struct dt_actors *actors,
                     const struct dt_message *m);
GPtrArray *dt_requests_by_begin(const struct dt_requests *requests); /* the caller frees it */
