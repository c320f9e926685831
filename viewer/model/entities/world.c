#include "model/entities/world.h"

#include <string.h>

#include "shared/contents.h"

struct function *dt_function_of(struct world *world, const char *text) {
    struct function *function = g_hash_table_lookup(world->functions, text);

    if (!function) {
        size_t size = strlen(text) + 1;

        function = g_malloc0(sizeof *function + size);
        memcpy(function->name, text, size);
        g_hash_table_insert(world->functions, function->name, function);
    }
    return function;
}

const char *dt_function(struct world *world, const char *text) {
    return *text ? dt_function_of(world, text)->name : "";
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
