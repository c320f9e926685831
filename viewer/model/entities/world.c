#include "model/entities/world.h"

#include "model/entities/functions.h"
#include "model/entities/nodes.h"
#include "shared/contents.h"

struct world *dt_world_new(const struct dt_sink *sink, void *of_sink,
                           const struct dt_hooks *hooks) {
    struct world *world = g_new0(struct world, 1);

    world->sink = sink;
    world->of_sink = of_sink;
    world->hooks = hooks;
    world->now = INT64_MIN + 1;
    world->shown = g_string_new(NULL);
    dt_nodes_new(world);
    dt_functions_new(world);
    return world;
}

void dt_world_free(struct world *world) {
    if (!world)
        return;
    dt_nodes_free(world);
    dt_functions_free(world);
    g_string_free(world->shown, TRUE);
    g_free(world);
}

const char *dt_world_reason(struct world *world, const char *reason) {
    if (world->shows_contents)
        return reason;
    dt_contents_of_reason(world->shown, reason);
    return world->shown->str;
}

const char *dt_world_text(struct world *world, const char *text) {
    if (world->shows_contents)
        return text;
    dt_contents_hide(world->shown, text);
    return world->shown->str;
}
