/*
 * Decoding: from the arguments of a tracer callback to the struct of a probe.
 *
 * routes.def maps trace events to decoders. The decoders of the provider org_erlang_dyntrace are in
 * decode.c, decode_identity.c, current.c, files.c and telemetry.c, those of other providers in
 * compat/. parts.h has their common functions.
 *
 * Decoders run inside the traced process: ARCHITECTURE.md, "Callback invariants".
 */
#ifndef DT_SOURCES_DECODE_H
#define DT_SOURCES_DECODE_H

#include "catalogue/event.h"
#include "text/text.h"

/* The arguments of a tracer callback, and the probe that the event is decoded for. */
struct dt_traced {
    ErlNifEnv *env;
    ERL_NIF_TERM tag;
    ERL_NIF_TERM state;  /* the tracer's, as given with {tracer, dyntrace, State} */
    ERL_NIF_TERM tracee; /* the traced process or port; for seq_trace, the token's label */
    ERL_NIF_TERM term;   /* the event's first argument, which depends on the tag */
    ERL_NIF_TERM opts;   /* a map; it has the key `extra` if the tag has a second argument */
    struct dt_text *text;
    enum dt_probe probe;
    const char *type; /* the text of the probe's field `type` */
};

enum dt_decoded {
    DT_DECODED,
    DT_UNDECODED, /* the event does not have the tag's shape */
    DT_NO_EVENT,  /* valid, but the probe does not fire for it */
};

/* Fills the member of `event` that belongs to the probe. */
typedef enum dt_decoded dt_decoder(struct dt_traced *trace, union dt_event *event);

/* The declaration is hidden, too, so that a route without a decoder does not link. */
#define ROUTE(tag, probe, decoder, type, flags)                                                    \
    __attribute__((visibility("hidden"))) dt_decoder dt_decode_##decoder;
#include "sources/routes.def"

#endif
