/* The functions of a recording, by their text: "lists:sort/1". */
#pragma once

#include "model/entities/world.h"

struct function {
    uint64_t calls, returns;
    char name[];
};

void dt_functions_new(struct world *world);
void dt_functions_free(struct world *world);

struct function *dt_function_of(struct world *world, const char *text);
/* A copy of the text that lives as long as the world. */
const char *dt_function(struct world *world, const char *text);
