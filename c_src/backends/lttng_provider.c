/*
 * The LTTng provider: a library of its own, so that the one with the NIFs loads where
 * there is no LTTng. It is loaded once and stays (-z nodelete): LTTng keeps pointers
 * to what is registered.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "dt_lttng_events.h"

#include "dt_lttng.h"

static const int disabled = 0;

static void fire_nothing(const union dt_event *event) {
    (void)event;
}

#define ERLANG_PROBE(name, when, differs, fields...)
#define PROBE(name, when, fields...)                                                               \
    static void fire_##name(const union dt_event *event) {                                         \
        lttng_ust_do_tracepoint(org_erlang_dyntrace, name, &event->name);                          \
    }
#include "dt_probes.def"

#define ERLANG_PROBE(name, when, differs, fields...) fire_nothing,
#define PROBE(name, when, fields...) fire_##name,
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "dt_probes.def"
};

#define ERLANG_PROBE(name, when, differs, fields...) &disabled,
#define PROBE(name, when, fields...) &lttng_ust_tracepoint_org_erlang_dyntrace___##name.state,
static const int *const state[DT_PROBES] = {
#include "dt_probes.def"
};

__attribute__((visibility("default"))) const struct dt_lttng_provider dt_lttng_provider = {
    .count = DT_PROBES,
    .definition = dt_lttng_definitions,
    .state = state,
    .fire = fire,
};
