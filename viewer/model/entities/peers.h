/* The other nodes that a node knows. */
#pragma once

#include "model/entities/nodes.h"

void dt_peers_new(struct node *node);
void dt_peers_free(struct node *node);
void dt_node_identity(struct node *node, const struct dt_node_identity *event);
/* The recorded node with this number in identifiers of `node`, which itself has 0; NULL if unknown.
 */
struct node *dt_peer(struct node *node, uint64_t number);
/* Another recorded node by its name; NULL if unknown. */
struct node *dt_peer_named(struct node *node, const char *name);
/* The recorded node of a pid, port or reference; NULL if unknown. */
struct node *dt_home(struct node *node, const char *identifier);
