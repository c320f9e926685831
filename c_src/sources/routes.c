#include "sources/routes.h"

#include "catalogue/atoms.h"
#include "sources/decode_erlang.h"

#define GROUP(group) static const struct dt_route group##_routes[] = {
#define ROUTE(tag, probe, decoder, type, flags)                                                    \
    {&atom_##tag, DT_##probe, dt_decode_##decoder, type, flags},
#define ASK(tag, probe) {&atom_##tag, DT_##probe, NULL, NULL, NULL},
#define SILENT(tag) {&atom_##tag, DT_PROBES, NULL, NULL, NULL},
#define EVERY(probe, decoder)                                                                      \
    {&atom_any, DT_##probe, dt_decode_erlang_##decoder, NULL, "any of the group"},
#define END                                                                                        \
    { NULL, DT_PROBES, NULL, NULL, NULL }                                                          \
    }                                                                                              \
    ;
#include "sources/routes.def"

#define GROUP(group) group##_routes,
const struct dt_route *const dt_routes[DT_GROUPS] = {
#include "sources/routes.def"
};

#define GROUP(group) #group,
const char *const dt_group_names[DT_GROUPS] = {
#include "sources/routes.def"
};

#define GROUP(group)                                                                               \
    _Static_assert(sizeof group##_routes / sizeof *group##_routes - 1 <= DT_GROUP_ROUTES,          \
                   #group " has more routes than a table by tag has room for");
#include "sources/routes.def"

struct dt_tag dt_tags[DT_GROUPS][DT_GROUP_ROUTES + 1];

static bool takes_every_tag(const struct dt_route *route) {
    return route->tag == &atom_any;
}

static void fill_tag(struct dt_tag *t, const struct dt_route *routes) {
    for (const struct dt_route *r = routes; r->tag; r++)
        if (r->probe != DT_PROBES && (takes_every_tag(r) || *r->tag == t->tag))
            t->routes[t->count++] = r;
}

static void fill_group(enum dt_group group) {
    struct dt_tag *last = dt_tags[group];

    for (const struct dt_route *r = dt_routes[group]; r->tag; r++)
        if (!takes_every_tag(r) && dt_tag_of(group, *r->tag)->tag == DT_NO_TAG) {
            last->tag = *r->tag;
            fill_tag(last++, dt_routes[group]);
        }
    fill_tag(last, dt_routes[group]);
}

void dt_tags_fill(void) {
    static bool filled;

    for (int group = 0; group < DT_GROUPS && !filled; group++)
        fill_group(group);
    filled = true;
}
