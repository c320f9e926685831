#include "model/entities/nodes.h"

#include <string.h>

#include "shared/remote_ids.h"
#include "shared/texts.h"

/* -- Nodes -------------------------------------------------------------------------- */

static unsigned hash_place(const void *data) {
    const struct dt_place *place = data;

    return g_str_hash(place->hostname) ^
           (unsigned)(place->vpid == DT_NO_VALUE ? (int64_t)place->trace : place->vpid);
}

static gboolean equal_places(const void *a, const void *b) {
    const struct dt_place *x = a, *y = b;

    return x->vpid == y->vpid && (x->vpid != DT_NO_VALUE || x->trace == y->trace) &&
           strcmp(x->hostname, y->hostname) == 0;
}

static char *provisional_name(const struct node *node) {
    if (node->seen.os_pid == DT_NO_VALUE)
        return *node->hostname ? g_strdup(node->hostname)
                               : g_strdup_printf("node %u", node->seen.number);
    if (!*node->hostname)
        return g_strdup_printf("OS process %" PRId64, node->seen.os_pid);
    return g_strdup_printf("%s, OS process %" PRId64, node->hostname, node->seen.os_pid);
}

static struct node *new_node(struct world *world, const struct dt_recorded *e) {
    struct node *node = g_new0(struct node, 1);

    node->world = world;
    node->hostname = g_strdup(e->place.hostname);
    node->place = e->place;
    node->place.hostname = node->hostname;
    node->otp = g_strdup("");
    node->unsure = node->untraced_from = DT_NO_VALUE;
    node->seen = (struct dt_node){.number = world->nodes->len,
                                  .hostname = node->hostname,
                                  .os_pid = e->place.vpid,
                                  .otp = node->otp,
                                  .clock = e->clock,
                                  .first = e->time,
                                  .last = e->time};
    node->seen.name = node->name = provisional_name(node);
    g_ptr_array_add(world->nodes, node);
    g_hash_table_insert(world->places, &node->place, node);
    DT_RUN_HOOKS(world, node_new, node);
    DT_EMIT(world, node, &node->seen);
    return node;
}

struct node *dt_node_of(struct world *world, const struct dt_recorded *e) {
    struct node *node = world->last_node;

    if (node && equal_places(&node->place, &e->place))
        return node;
    node = g_hash_table_lookup(world->places, &e->place);
    return world->last_node = node ? node : new_node(world, e);
}

/* -- When they are traced ----------------------------------------------------------- */

static void end_untraced(struct node *node, int64_t time) {
    if (node->untraced_from == DT_NO_VALUE)
        return;
    node->seen.untraced += time - node->untraced_from;
    node->untraced_from = DT_NO_VALUE;
}

/* The pause lasts until dt_node_traced, but its time is known now. */
void dt_node_resumed(struct node *node) {
    if (node->untraced_from == DT_NO_VALUE)
        return;
    node->seen.untraced += node->world->now - node->untraced_from;
    node->untraced_from = node->world->now;
}

void dt_node_traced(struct node *node) {
    node->traced = node->world->now;
    end_untraced(node, node->traced);
}

void dt_node_untraced(struct node *node) {
    DT_RUN_HOOKS(node->world, lost, node, node->traced);
    /* The first report of all may be that flags are about to be set. */
    node->seen.was_untraced |= node->traced || node->untraced_from != DT_NO_VALUE;
    if (node->untraced_from == DT_NO_VALUE)
        node->untraced_from = node->traced ? node->traced : node->seen.first;
}

void dt_node_last(struct node *node) {
    end_untraced(node, node->seen.last);
}

/* -- Their names -------------------------------------------------------------------- */

/* Nodes with the same name, for example nonode@nohost, the name of all nodes without distribution.
 */
struct namesakes {
    struct node *first; /* NULL once it has another name */
    unsigned nodes;
};

static bool set_name(struct node *node, bool is_alone) {
    char *name =
        is_alone || node->seen.os_pid == DT_NO_VALUE
            ? g_strdup(node->own_name)
            : g_strdup_printf("%s, OS process %" PRId64, node->own_name, node->seen.os_pid);
    bool is_new = dt_set(&node->name, name);

    g_free(name);
    node->seen.name = node->name;
    return is_new;
}

static void leave_namesakes(struct node *node) {
    struct namesakes *of =
        node->own_name ? g_hash_table_lookup(node->world->namesakes, node->own_name) : NULL;

    if (!of)
        return;
    of->nodes--;
    if (of->first == node)
        of->first = NULL;
}

static void join_namesakes(struct node *node) {
    GHashTable *all = node->world->namesakes;
    struct namesakes *of = g_hash_table_lookup(all, node->own_name);

    if (!of) {
        of = g_new0(struct namesakes, 1);
        g_hash_table_insert(all, g_strdup(node->own_name), of);
    }
    if (of->nodes++ == 0)
        of->first = node;
    set_name(node, of->nodes == 1);
    if (of->nodes == 2 && of->first && set_name(of->first, false))
        DT_EMIT(node->world, node, &of->first->seen);
}

void dt_node_named(struct node *node, const char *own_name, const char *otp) {
    bool has_new_otp = *otp && dt_set(&node->otp, otp);
    bool has_new_name = *own_name && g_strcmp0(node->own_name, own_name) != 0;

    node->seen.otp = node->otp;
    if (has_new_name) {
        leave_namesakes(node);
        dt_set(&node->own_name, own_name);
        g_free(node->bare_name);
        node->bare_name = dt_remote_node(own_name);
        node->world->names++;
        join_namesakes(node);
    }
    if (has_new_otp || has_new_name)
        DT_EMIT(node->world, node, &node->seen);
}

static void free_node(void *data) {
    struct node *node = data;

    DT_RUN_HOOKS(node->world, node_free, node);
    g_free(node->name);
    g_free(node->own_name);
    g_free(node->bare_name);
    g_free(node->hostname);
    g_free(node->otp);
    g_free(node);
}

/* -- The world ---------------------------------------------------------------------- */

struct world *dt_world_new(const struct dt_sink *sink, void *of_sink,
                           const struct dt_hooks *hooks) {
    struct world *world = g_new0(struct world, 1);

    world->sink = sink;
    world->of_sink = of_sink;
    world->hooks = hooks;
    world->now = INT64_MIN + 1;
    world->shown = g_string_new(NULL);
    world->elixir = g_string_new(NULL);
    world->nodes = g_ptr_array_new_with_free_func(free_node);
    world->places = g_hash_table_new(hash_place, equal_places);
    world->namesakes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    world->functions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    return world;
}

void dt_world_free(struct world *world) {
    if (!world)
        return;
    g_hash_table_destroy(world->places);
    g_hash_table_destroy(world->namesakes);
    g_ptr_array_free(world->nodes, true);
    g_hash_table_destroy(world->functions);
    g_string_free(world->shown, true);
    g_string_free(world->elixir, true);
    g_free(world);
}

/* -- Losses ------------------------------------------------------------------------- */

static bool is_at(const struct node *node, const struct dt_place *place) {
    return place->vpid == DT_NO_VALUE ? node->place.trace == place->trace
                                      : equal_places(&node->place, place);
}

struct node *dt_nodes_lost(struct world *world, const struct dt_place *place, int64_t begin) {
    struct node *found = NULL;
    unsigned nodes = 0;

    for (unsigned i = 0; i < world->nodes->len; i++) {
        struct node *node = world->nodes->pdata[i];

        if (!is_at(node, place))
            continue;
        DT_RUN_HOOKS(world, lost, node, begin);
        found = node;
        nodes++;
    }
    return nodes == 1 ? found : NULL;
}

void dt_nodes_unsure(struct world *world, const struct dt_place *place, int64_t end) {
    for (unsigned i = 0; i < world->nodes->len; i++) {
        struct node *node = world->nodes->pdata[i];

        if (is_at(node, place))
            node->unsure = MAX(node->unsure, end);
    }
}
