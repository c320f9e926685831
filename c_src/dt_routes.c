#include "dt_atoms.h"
#include "dt_decode.h"

#define GROUP(group) static const struct dt_route group##_routes[] = {
#define ROUTE(tag, probe, decoder, type, flags)                                                    \
    {&atom_##tag, DT_##probe, dt_decode_##decoder, type, flags},
#define ASK(tag, probe) {&atom_##tag, DT_##probe, NULL, NULL, NULL},
#define SILENT(tag) {&atom_##tag, DT_PROBES, NULL, NULL, NULL},
#define EVERY(probe, decoder)                                                                      \
    {&atom_any, DT_##probe, dt_decode_erlang_##decoder, NULL, "any of the group's"},
#define END                                                                                        \
    { NULL, DT_PROBES, NULL, NULL, NULL }                                                          \
    }                                                                                              \
    ;
#include "dt_routes.def"

#define GROUP(group) group##_routes,
const struct dt_route *const dt_routes[DT_GROUPS] = {
#include "dt_routes.def"
};

#define GROUP(group) #group,
const char *const dt_group_names[DT_GROUPS] = {
#include "dt_routes.def"
};
