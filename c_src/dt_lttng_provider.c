/*
 * The LTTng provider: a library of its own, so that the one with the NIFs loads where
 * there is no LTTng. It is loaded once and stays (-z nodelete): LTTng keeps pointers
 * to what is registered.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "dt_lttng_events.h"

#include "dt_lttng.h"

#define PROBE(name, when, fields)                                                                  \
    static void fire_##name(const union dt_event *event) {                                         \
        lttng_ust_do_tracepoint(org_erlang_dyntrace, name, &event->name);                          \
    }
#include "dt_probes.def"

#define STR(name, ...) "str " #name ", "
#define TEXT(name, ...) "str " #name ", "
#define UINT(name, ...) "u32 " #name ", "
#define ULONG(name, ...) "u64 " #name ", "
#define PROBE(name, when, fields)                                                                  \
    {DT_DEFINITION(name, fields), &lttng_ust_tracepoint_org_erlang_dyntrace___##name.state,        \
     fire_##name},
static const struct dt_lttng_probe probes[] = {
#include "dt_probes.def"
};

__attribute__((visibility("default"))) const struct dt_lttng_provider dt_lttng_provider = {
    .count = sizeof probes / sizeof *probes,
    .probes = probes,
};
