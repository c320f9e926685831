#include "sources/routes.h"

#include <string.h>

#define GROUP(group) static const struct dt_route group##_routes[] = {
#define ROUTE(tag, probe, decoder, type, flags)                                                    \
    {#tag, DT_##probe, dt_decode_##decoder, type, flags},
#define ASK(tag, probe, flags) {#tag, DT_##probe, NULL, NULL, flags},
#define SILENT(tag) {#tag, DT_PROBES, NULL, NULL, NULL},
#define END                                                                                        \
    { NULL, DT_PROBES, NULL, NULL, NULL }                                                          \
    }                                                                                              \
    ;
#include "sources/routes.def"

/* Routes with a decoder have to fit the bits of a word. */
#define GROUP(group) _Static_assert(DT_ROUTES >= 0
#define ROUTE(...) +1
#define END , "a group has more routes than a word has bits");
#include "sources/routes.def"

#define GROUP(group) group##_routes,
const struct dt_route *const dt_routes[DT_GROUPS] = {
#include "sources/routes.def"
};

#define GROUP(group) #group,
const char *const dt_group_names[DT_GROUPS] = {
#include "sources/routes.def"
};

/* Hidden, like the decoders, so that a missing noter is an error of the linker. */
#define NOTES(group, noter) __attribute__((visibility("hidden"))) dt_noter noter;
#include "sources/routes.def"

#define NOTES(group, noter) [DT_GROUP_##group] = noter,
dt_noter *const dt_noters[DT_GROUPS] = {
#include "sources/routes.def"
};

/* -- By tag --------------------------------------------------------------------------- */

/* At most one tag per route, and one that ends the group. A route belongs to one tag or to all.
 */
enum {
#define GROUP(group) +sizeof group##_routes / sizeof *group##_routes
    TAGS = 0
#include "sources/routes.def"
};

static struct dt_tag tags[TAGS];
static const struct dt_route *by_tag[2 * TAGS];
static struct dt_tag_probe by_backend[2 * TAGS * DT_BACKENDS];

struct dt_tag *dt_tags[DT_GROUPS];

static bool takes_every_tag(const struct dt_route *route) {
    return strcmp(route->tag, "any") == 0;
}

static bool has(const struct dt_tag_probes *of, enum dt_probe probe) {
    for (unsigned i = 0; i < of->count; i++)
        if (of->probes[i].probe == probe)
            return true;
    return false;
}

/* Returns the element after the filled ones. */
static struct dt_tag_probe *fill_backend(struct dt_tag *t, unsigned backend,
                                         struct dt_tag_probe *place) {
    struct dt_tag_probes *of = &t->of[backend];

    of->probes = place;
    for (unsigned i = 0; i < t->count; i++) {
        enum dt_probe probe = t->routes[i]->probe;

        if (!(dt_probes[probe].backends & 1U << backend) ||
            (!t->routes[i]->decode && has(of, probe)))
            continue;
        of->probes[of->count++] = (struct dt_tag_probe){(uint16_t)probe, (uint16_t)i};
        of->decoded += t->routes[i]->decode != NULL;
    }
    return place + of->count;
}

static void fill_routes(ErlNifEnv *env, struct dt_tag *t, const struct dt_route *routes,
                        bool decoded) {
    for (const struct dt_route *r = routes; r->tag; r++)
        if (r->probe != DT_PROBES && (r->decode != NULL) == decoded &&
            (takes_every_tag(r) || enif_make_atom(env, r->tag) == t->tag))
            t->routes[t->count++] = r;
}

static void fill_tag(ErlNifEnv *env, struct dt_tag *t, const struct dt_route *routes) {
    static const struct dt_route **place = by_tag;
    static struct dt_tag_probe *probes = by_backend;

    t->routes = place;
    fill_routes(env, t, routes, true);
    fill_routes(env, t, routes, false);
    place += t->count;
    for (unsigned backend = 0; backend < DT_BACKENDS; backend++)
        probes = fill_backend(t, backend, probes);
}

void dt_tags_fill(ErlNifEnv *env) {
    struct dt_tag *last = tags;

    for (int group = 0; group < DT_GROUPS && !dt_tags[DT_GROUPS - 1]; group++) {
        dt_tags[group] = last;
        for (const struct dt_route *r = dt_routes[group]; r->tag; r++) {
            ERL_NIF_TERM tag = enif_make_atom(env, r->tag);

            if (takes_every_tag(r) || dt_tag_of(group, tag)->tag != DT_NO_TAG)
                continue;
            last->tag = tag;
            fill_tag(env, last++, dt_routes[group]);
        }
        fill_tag(env, last++, dt_routes[group]);
    }
}
