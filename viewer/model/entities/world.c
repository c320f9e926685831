#include "model/entities/world.h"

#include <string.h>

#include "shared/contents.h"
#include "shared/elixir.h"

struct function *dt_function_of(struct world *world, const char *recorded) {
    g_autofree char *of_elixir = dt_elixir_function(recorded);
    const char *text = of_elixir ? of_elixir : recorded;
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

const char *dt_world_reason(struct world *world, bool is_elixir, const char *reason) {
    GString *text = world->shown;

    if (world->shows_contents)
        g_string_assign(text, reason);
    else
        dt_contents_hide(text, reason);
    if (is_elixir) {
        text = g_string_truncate(world->elixir, 0);
        dt_elixir_term(text, world->shown->str);
    }
    if (!world->shows_contents)
        dt_contents_cut(text);
    return text->str;
}

const char *dt_world_text(struct world *world, const char *text) {
    if (world->shows_contents)
        return text;
    dt_contents_hide(world->shown, text);
    return world->shown->str;
}
