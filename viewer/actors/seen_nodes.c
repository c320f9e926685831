#include "actors/seen_nodes.h"

#include "shared/texts.h"

const char *const dt_recorded_kind_words[] = {
#define KIND(name, word) word,
    DT_EACH_RECORDED_KIND(KIND)
#undef KIND
};

static void free_node(void *of) {
    struct dt_seen_node *node = of;

    if (!node)
        return;
    g_free(node->name);
    g_free(node->hostname);
    g_free(node->otp);
    g_free(node);
}

void dt_seen_nodes_init(struct dt_seen_nodes *nodes) {
    nodes->by_number = g_ptr_array_new_with_free_func(free_node);
}

void dt_seen_nodes_free(struct dt_seen_nodes *nodes) {
    g_ptr_array_free(nodes->by_number, true);
}

struct dt_seen_node *dt_seen_node(struct dt_seen_nodes *nodes, const struct dt_node *node) {
    if (!node)
        return NULL;
    if (node->number >= nodes->by_number->len)
        g_ptr_array_set_size(nodes->by_number, (int)node->number + 1);
    void **seen = &g_ptr_array_index(nodes->by_number, node->number);
    if (!*seen) {
        struct dt_seen_node *new = *seen = g_new0(struct dt_seen_node, 1);

        new->number = node->number + 1;
    }
    return *seen;
}

struct dt_seen_node *dt_seen_node_learn(struct dt_seen_nodes *nodes, const struct dt_node *node) {
    struct dt_seen_node *seen = dt_seen_node(nodes, node);

    if (!seen)
        return NULL;
    dt_set(&seen->name, node->name);
    dt_set(&seen->hostname, node->hostname);
    dt_set(&seen->otp, node->otp);
    seen->clock = node->clock;
    seen->os_pid = node->os_pid;
    seen->first = node->first;
    seen->last = node->last;
    seen->untraced = node->untraced;
    seen->was_untraced = node->was_untraced;
    seen->is_elixir = node->is_elixir;
    return seen;
}

const char *dt_seen_node_name(const struct dt_seen_node *node) {
    return node && node->name ? node->name : "";
}

bool dt_seen_nodes_are_several(const struct dt_seen_nodes *nodes) {
    unsigned n = 0;

    for (unsigned i = 0; i < nodes->by_number->len; i++)
        n += g_ptr_array_index(nodes->by_number, i) != NULL;
    return n > 1;
}

GPtrArray *dt_seen_nodes_known(const struct dt_seen_nodes *nodes) {
    GPtrArray *known = g_ptr_array_new();

    for (unsigned i = 0; i < nodes->by_number->len; i++)
        if (g_ptr_array_index(nodes->by_number, i))
            g_ptr_array_add(known, g_ptr_array_index(nodes->by_number, i));
    return known;
}

int64_t dt_seen_node_traced(const struct dt_seen_node *node) {
    return MAX(node->last - node->first - node->untraced, 0);
}

int64_t dt_seen_nodes_untraced(const struct dt_seen_nodes *nodes) {
    int64_t untraced = 0, between = 0, least = 0, end = DT_NO_VALUE;

    /* In the order of their first events. A node that is started again is another node. */
    for (unsigned i = 0; i < nodes->by_number->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes->by_number, i);

        if (!node)
            continue;
        if (end != DT_NO_VALUE && node->first <= end) {
            least = MIN(least, node->untraced);
            end = MAX(end, node->last);
            continue;
        }
        untraced += least;
        between += end == DT_NO_VALUE ? 0 : node->first - end;
        least = node->untraced;
        end = node->last;
    }
    untraced += least;
    return untraced ? untraced + between : 0;
}
