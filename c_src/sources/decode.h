/*
 * Decoding: from the arguments of a tracer callback to the struct of a probe.
 *
 * The table dt_routes says for each group of callbacks which tags there are and
 * which probe and decoder each one feeds (dt_routes.def). The decoders are in
 * dt_decode.c, those of the provider erlang in dt_decode_erlang.c; the parts that they
 * share are below.
 *
 * All of this runs inside the traced process: no allocation, no sends, no locks.
 */
#ifndef DT_DECODE_H
#define DT_DECODE_H

#include "dt_event.h"
#include "dt_text.h"

struct dt_route;

/* One trace event, as a tracer callback gets it. */
struct dt_traced {
    ErlNifEnv *env;
    const struct dt_route *route;
    ERL_NIF_TERM tag;
    ERL_NIF_TERM state;  /* the tracer's, as given with {tracer, dyntrace, State} */
    ERL_NIF_TERM tracee; /* who it happens to; the label where it is of seq_trace */
    ERL_NIF_TERM term;   /* what happens */
    ERL_NIF_TERM opts;   /* a map; `extra` is in it where the tag has one */
    struct dt_text *text;
};

/* DT_UNDECODED: the event does not have the tag's shape. DT_NO_EVENT: it has, and the
   probe does not fire of it. */
enum dt_decoded { DT_UNDECODED = false, DT_DECODED = true, DT_NO_EVENT };

/* Fills the member of `event` that belongs to the route's probe. */
typedef enum dt_decoded dt_decoder(struct dt_traced *trace, union dt_event *event);

struct dt_route {
    const ERL_NIF_TERM *tag; /* &atom_any: every tag; NULL ends a group */
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

/* The same by tag, for the callbacks: the routes of a group that this tag takes, those of every tag
   included. The VM asks about every event, and almost always no probe is enabled. */
enum { DT_GROUP_ROUTES = 20 }; /* or fewer */

struct dt_tag {
    ERL_NIF_TERM tag; /* DT_NO_TAG: all that the group does not know, the last one */
    unsigned count;
    const struct dt_route *routes[DT_GROUP_ROUTES];
};

#define DT_NO_TAG ((ERL_NIF_TERM)0) /* no term is that */

extern struct dt_tag dt_tags[DT_GROUPS][DT_GROUP_ROUTES + 1];

/* Fills dt_tags at the first load, when the atoms are made. */
void dt_tags_fill(void);

static inline const struct dt_tag *dt_tag_of(enum dt_group group, ERL_NIF_TERM tag) {
    const struct dt_tag *t = dt_tags[group];

    while (t->tag != tag && t->tag != DT_NO_TAG)
        t++;
    return t;
}

#define ROUTE(tag, probe, decoder, type, flags) dt_decoder dt_decode_##decoder;
#define EVERY(probe, decoder) dt_decoder dt_decode_erlang_##decoder;
#include "dt_routes.def"

/* -- Parts of events ------------------------------------------------------------ */

/* Text, or the end of the decoder. */
#define DT_TRY(field, text_or_null)                                                                \
    do {                                                                                           \
        if (!((field) = (text_or_null)))                                                           \
            return DT_UNDECODED;                                                                   \
    } while (0)

const char *dt_id(struct dt_traced *trace, ERL_NIF_TERM term);
const char *dt_term(struct dt_traced *trace, ERL_NIF_TERM term);

/* What `opts` hold under the key `extra`. */
bool dt_extra(const struct dt_traced *trace, ERL_NIF_TERM *value);

/* A location: {M,F,Args} or {M,F,Arity}. */
const char *dt_mfa(struct dt_traced *trace, ERL_NIF_TERM location);

/* A location that the VM may not know: then it says 0, or undefined. */
const char *dt_where(struct dt_traced *trace, ERL_NIF_TERM location);

/* The value of a key in a list of {Key, Value}, as of garbage collections. */
bool dt_value(const struct dt_traced *trace, ERL_NIF_TERM key, uint64_t *value);

/* {send | 'receive' | print, {Previous,Current}, From, To, Message}, what seq_trace tells of a
   token's message; To is [] of print. */
struct dt_seq_info {
    uint64_t previous, current;
    ERL_NIF_TERM from, to, message;
};

bool dt_get_seq_info(const struct dt_traced *trace, struct dt_seq_info *info);

#endif
