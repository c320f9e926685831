/*
 * Decoding: from the arguments of a tracer callback to the struct of a probe.
 *
 * The table dt_routes says for each group of callbacks which tags there are and
 * which probe and decoder each one feeds (dt_routes.def).
 */
#ifndef DT_DECODE_H
#define DT_DECODE_H

#include "dt_event.h"
#include "dt_text.h"

struct dt_route;

/* One trace event, as a tracer callback gets it. */
struct dt_trace {
    ErlNifEnv *env;
    const struct dt_route *route;
    ERL_NIF_TERM tracee; /* who it happens to; the label where it is of seq_trace */
    ERL_NIF_TERM term;   /* what happens */
    ERL_NIF_TERM opts;   /* a map; `extra` is in it where the tag has one */
    struct dt_text *text;
};

/* Fills the member of `event` that belongs to the route's probe; answers false, and
   changes nothing that matters, where the event does not have the tag's shape. */
typedef bool dt_decoder(struct dt_trace *trace, union dt_event *event);

struct dt_route {
    const ERL_NIF_TERM *tag; /* NULL ends a group */
    enum dt_probe probe;     /* DT_PROBES: none */
    dt_decoder *decode;      /* NULL: only asked about */
    const char *type;        /* the text of the event's field `type` */
    const char *flags;       /* what makes the VM yield it */
};

/* DT_GROUP_procs … */
enum dt_group {
#define GROUP(group) DT_GROUP_##group,
#include "dt_routes.def"
    DT_GROUPS
};

/* The routes of each group, ended by one without a tag. */
extern const struct dt_route *const dt_routes[DT_GROUPS];
extern const char *const dt_group_names[DT_GROUPS];

#endif
