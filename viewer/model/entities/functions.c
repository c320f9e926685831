#include "model/entities/functions.h"

#include <string.h>

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

void dt_functions_new(struct world *world) {
    world->functions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
}

void dt_functions_free(struct world *world) {
    g_hash_table_destroy(world->functions);
}
