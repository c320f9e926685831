/*
 * Implied calls: the calls of a module that the application traces for the probes of a group, even
 * if its functions are not configured.
 *
 * Such a call is an event of the module's group (MODULE_GROUP in routes.def) as well as of the
 * group `call`. A consumer of function_call must not see calls that are not configured, so the
 * library has a list of the functions that are traced only for their group.
 */
#ifndef DT_SOURCES_IMPLIED_CALLS_H
#define DT_SOURCES_IMPLIED_CALLS_H

#include <stdbool.h>

#include "sources/nif.h"
#include "sources/routes.h"

struct dt_implied_call {
    enum dt_group group; /* of its module; DT_GROUPS: none */
    bool is_of_calls;    /* whether it also belongs to the group `call` */
};

/* For an event of the group `call`. */
struct dt_implied_call dt_implied_calls_look(const struct dt_traced *trace);

/* [{Module, Function, Arity}]: the functions that are traced only for the group of their module. */
dt_nif dt_implied_calls_set;

#endif
