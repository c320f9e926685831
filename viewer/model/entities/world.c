#include "model/entities/world.h"

#include "model/entities/functions.h"
#include "model/entities/nodes.h"

struct world *dt_world_new(const struct dt_sink *sink, void *of_sink,
                           const struct dt_moments *moments) {
    struct world *world = g_new0(struct world, 1);

    world->sink = sink;
    world->of_sink = of_sink;
    world->moments = moments;
    world->now = INT64_MIN + 1;
    dt_nodes_new(world);
    dt_functions_new(world);
    return world;
}

void dt_world_free(struct world *world) {
    if (!world)
        return;
    dt_nodes_free(world);
    dt_functions_free(world);
    g_free(world);
}
