/*
 * Routes: which trace events feed which probes, and by which decoder (routes.def).
 */
#ifndef DT_SOURCES_ROUTES_H
#define DT_SOURCES_ROUTES_H

#include <stdint.h>

#include "catalogue/probes.h"
#include "sources/decode.h"

struct dt_route {
    const char *tag;     /* "any": every tag; NULL ends a group */
    enum dt_probe probe; /* DT_PROBES: none */
    dt_decoder *decode;  /* NULL: an ASK */
    const char *type;    /* the text of the probe's field `type` */
    const char *flags;   /* documentation: the trace flags that make the VM yield the event */
};

/* DT_GROUP_procs … */
enum dt_group {
#define GROUP(group) DT_GROUP_##group,
#include "sources/routes.def"
    DT_GROUPS
};

/* The routes of each group, terminated by one without a tag. */
extern const struct dt_route *const dt_routes[DT_GROUPS];
extern const char *const dt_group_names[DT_GROUPS];

/* A set of a tag's routes that have a decoder fits one word. */
enum { DT_ROUTES = 64 };

/* The same by tag, for the callbacks: the routes of a group for this tag, including those for every
   tag. The VM calls `enabled` for every event, and almost always no probe is enabled. */
struct dt_tag {
    ERL_NIF_TERM tag; /* DT_NO_TAG: any tag that is not in the group; terminates a group */
    unsigned count;
    const struct dt_route **routes; /* those with a decoder first */
    /* The probes by backend: those of the routes with a decoder, in order, then the others, each
       once. */
    struct dt_tag_probes {
        unsigned decoded, count;
        struct dt_tag_probe {
            uint16_t probe, route; /* which of the routes */
        } * probes;
    } of[DT_BACKENDS];
};

#define DT_NO_TERM ((ERL_NIF_TERM)0) /* not a valid term */
#define DT_NO_TAG DT_NO_TERM

extern struct dt_tag *dt_tags[DT_GROUPS];

/* Fills dt_tags at the first load. */
void dt_tags_fill(ErlNifEnv *env);

/* Gets the events of the group before they are decoded; may be NULL. */
typedef void dt_noter(const struct dt_traced *trace);

extern dt_noter *const dt_noters[DT_GROUPS];

static inline const struct dt_tag *dt_tag_of(enum dt_group group, ERL_NIF_TERM tag) {
    const struct dt_tag *t = dt_tags[group];

    while (t->tag != tag && t->tag != DT_NO_TAG)
        t++;
    return t;
}

#endif
