/*
 * Routes: which trace events go to which probes, by which decoder (routes.def).
 */
#ifndef DT_SOURCES_ROUTES_H
#define DT_SOURCES_ROUTES_H

#include <stdint.h>

#include "catalogue/probes.h"
#include "sources/decode.h"

struct dt_route {
    const ERL_NIF_TERM *tag; /* &atom_any: every tag; NULL ends a group */
    enum dt_probe probe;     /* DT_PROBES: none */
    dt_decoder *decode;      /* NULL: only asked about */
    const char *type;        /* the text of the probe's field `type` */
    const char *flags;       /* for people: the trace flags that make the VM yield the event */
};

/* DT_GROUP_procs … */
enum dt_group {
#define GROUP(group) DT_GROUP_##group,
#include "sources/routes.def"
    DT_GROUPS
};

/* The routes of each group, ended by one without a tag. */
extern const struct dt_route *const dt_routes[DT_GROUPS];
extern const char *const dt_group_names[DT_GROUPS];

/* A set of a tag's routes with a decoder is one word. */
enum { DT_ROUTES = 64 };

/* The same by tag, for the callbacks: the routes of a group that this tag takes, those of every tag
   included. The VM asks about every event, and almost always no probe is enabled. */
struct dt_tag {
    ERL_NIF_TERM tag; /* DT_NO_TAG: any tag that the group does not have; ends a group */
    unsigned count;
    const struct dt_route **routes; /* those with a decoder first */
    /* By the backends that the probes have: those of the routes with a decoder, in their order,
       then the others, each once. */
    struct dt_tag_probes {
        unsigned decoded, count;
        struct dt_tag_probe {
            uint16_t probe, route; /* which of the routes */
        } * probes;
    } of[DT_BACKENDS];
};

#define DT_NO_TAG ((ERL_NIF_TERM)0) /* no term is that */

extern struct dt_tag *dt_tags[DT_GROUPS];

/* Fills dt_tags at the first load, when the atoms are made. */
void dt_tags_fill(void);

/* Gets the events of the group before they are decoded; NULL: nobody does. */
typedef void dt_noter(const struct dt_traced *trace);

extern dt_noter *const dt_noters[DT_GROUPS];

static inline const struct dt_tag *dt_tag_of(enum dt_group group, ERL_NIF_TERM tag) {
    const struct dt_tag *t = dt_tags[group];

    while (t->tag != tag && t->tag != DT_NO_TAG)
        t++;
    return t;
}

#endif
