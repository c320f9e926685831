/*
 * What processes did at the end of the recording, by their stacks, which the command reads from the
 * node's memory and passes to the sink: a line for all processes of a node that did the same.
 *
 *     NODE <tab> its OS process <tab> kind <tab> what they did <tab> PID PID ...
 */
#pragma once

#include "actors/actors.h"

#define DT_EACH_STACK_KIND(KIND)                                                                   \
    KIND(RAN, "ran")     /* in most of several samples near the end */                             \
    KIND(RUNS, "runs")   /* at the end */                                                          \
    KIND(WAITS, "waits") /* at the end */

enum dt_stack_kind {
#define KIND(name, word) DT_STACK_##name,
    DT_EACH_STACK_KIND(KIND)
#undef KIND
        DT_STACK_KINDS
};

/* What the process did: "waited in gen:do_call/4, called from shop_cart:add/2 (shop_cart.erl:17)".
   NULL if that is unknown. To be freed by g_free. */
char *dt_process_clause(const char *stacks, const struct dt_actor *actor, enum dt_stack_kind kind);
