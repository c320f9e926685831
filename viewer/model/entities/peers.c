/*
 * The other nodes that a node knows. The node_identity events of a node have the numbers that it
 * uses for other nodes. The recorded node of a number is found by its name and, if both are known,
 * by its OS process, because a restarted node has the same name.
 */
#include "model/entities/peers.h"

#include <string.h>

#include "shared/remote_ids.h"
#include "shared/texts.h"

/* The maximum number of peers of one node; further ones are not resolved. */
enum { PEERS_MAX = 10000 };

struct peer {
    uint64_t number;
    char *name;
    int64_t os_pid; /* 0: unknown */
    struct node *node;
    uint64_t names; /* `names` of the world when `node` was looked up */
};

struct peers {
    GHashTable *by_number; /* number in the node's identifiers -> struct peer */
    GHashTable *by_name;
    int64_t os_pid;  /* of the node itself, by its identity; 0 if unknown */
    char *last_name; /* the last name that was looked up */
    uint64_t last_names;
    struct node *last;
};

static void free_peer(void *data) {
    struct peer *peer = data;

    g_free(peer->name);
    g_free(peer);
}

void dt_peers_new(struct node *node) {
    node->peers = g_new0(struct peers, 1);
    node->peers->by_number = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_peer);
    node->peers->by_name = g_hash_table_new(g_str_hash, g_str_equal);
}

void dt_peers_free(struct node *node) {
    g_hash_table_destroy(node->peers->by_name);
    g_hash_table_destroy(node->peers->by_number);
    g_free(node->peers->last_name);
    g_free(node->peers);
}

/* If several peers have the same name, it refers to the last of them. */
static void set_name(struct node *node, struct peer *peer, char *name) {
    if (peer->name && g_hash_table_lookup(node->peers->by_name, peer->name) == peer)
        g_hash_table_remove(node->peers->by_name, peer->name);
    g_free(peer->name);
    peer->name = name;
    g_hash_table_replace(node->peers->by_name, peer->name, peer);
}

static void learn(struct node *node, uint64_t number, const struct dt_node_identity *e) {
    struct peer *peer = g_hash_table_lookup(node->peers->by_number, &number);

    if (!peer) {
        if (g_hash_table_size(node->peers->by_number) >= PEERS_MAX)
            return;
        peer = g_new0(struct peer, 1);
        peer->number = number;
        g_hash_table_insert(node->peers->by_number, &peer->number, peer);
    }
    set_name(node, peer, dt_remote_node(e->node));
    peer->os_pid = (int64_t)e->os_pid;
    node->world->names++;
}

void dt_node_identity(struct node *node, const struct dt_node_identity *e) {
    char *end;
    uint64_t number = g_ascii_strtoull(e->prefix, &end, 10);

    if (!*e->prefix || *end || !*e->node)
        return;
    if (number) {
        learn(node, number, e);
        return;
    }
    node->peers->os_pid = (int64_t)e->os_pid;
    node->world->names++;
    dt_node_named(node, e->node, e->otp);
}

/* -- Recorded nodes ----------------------------------------------------------------- */

static int64_t os_pid_of(const struct node *node) {
    if (node->peers->os_pid)
        return node->peers->os_pid;
    return node->seen.os_pid == DT_NO_VALUE ? 0 : node->seen.os_pid;
}

static bool may_be(const struct node *node, int64_t os_pid) {
    return !os_pid || !os_pid_of(node) || os_pid == os_pid_of(node);
}

/* Returns NULL if no node or several nodes have the name. */
static struct node *recorded(const struct node *asks, const char *name, int64_t os_pid) {
    const struct world *world = asks->world;
    struct node *found = NULL;

    for (unsigned i = 0; i < world->nodes->len; i++) {
        struct node *node = world->nodes->pdata[i];

        if (node == asks || g_strcmp0(node->bare_name, name) != 0 || !may_be(node, os_pid))
            continue;
        if (found)
            return NULL;
        found = node;
    }
    return found;
}

static struct node *node_of(struct node *asks, struct peer *peer) {
    if (peer->names != asks->world->names) {
        peer->names = asks->world->names;
        peer->node = recorded(asks, peer->name, peer->os_pid);
    }
    return peer->node;
}

struct node *dt_peer(struct node *node, uint64_t number) {
    struct peer *peer = number ? g_hash_table_lookup(node->peers->by_number, &number) : NULL;

    if (!number)
        return node;
    return peer ? node_of(node, peer) : NULL;
}

struct node *dt_peer_named(struct node *node, const char *name) {
    struct peers *peers = node->peers;
    struct peer *peer;
    char *bare;

    if (peers->last_name && peers->last_names == node->world->names &&
        strcmp(peers->last_name, name) == 0)
        return peers->last;
    bare = dt_remote_node(name);
    /* If several nodes have this name, use the one that `node` is connected to. */
    peer = g_hash_table_lookup(peers->by_name, bare);
    if (g_strcmp0(node->bare_name, bare) == 0)
        peers->last = node;
    else
        peers->last = peer ? node_of(node, peer) : recorded(node, bare, 0);
    g_free(bare);
    dt_set(&peers->last_name, name);
    peers->last_names = node->world->names;
    return peers->last;
}

struct node *dt_home(struct node *node, const char *identifier) {
    uint64_t number;

    return dt_remote_number(identifier, &number) ? dt_peer(node, number) : NULL;
}
