/*
 * The code of an LTTng provider, for the source file of its name. That file defines
 *
 *   DT_LTTNG_PROVIDER   the provider
 *   OF_<provider>       selects its probes: see DT_CHOOSE_OF in catalogue/choose.h
 *
 * A provider is a separate library, so that the NIF library also loads on systems without LTTng. It
 * is never unloaded (-z nodelete), because LTTng keeps pointers to its data.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include "backends/lttng/tracepoints.h"

#define DT_LTTNG_CHOOSE DT_CHOOSE_OF

#include "backends/lttng/lttng.h"

#define ON_lttng , 1,

#define FIRE(name, provider)                                                                       \
    static void fire_##name(const union dt_event *event) {                                         \
        lttng_ust_do_tracepoint(provider, name, &event->name);                                     \
    }
#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE_OF(FIRE, DT_NOTHING, provider, backends)(name, provider)
#include "catalogue/probes.def"

/* NULL for a probe that is not a tracepoint of this provider. Its definition is empty, so these are
   never read. */
#define FIRE_ENTRY(name) [DT_##name] = fire_##name,
#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE_OF(FIRE_ENTRY, DT_NOTHING, provider, backends)(name)
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "catalogue/probes.def"
};

#define STATE(name, provider) [DT_##name] = &lttng_ust_tracepoint_##provider##___##name.state,
#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE_OF(STATE, DT_NOTHING, provider, backends)(name, provider)
static const int *const state[DT_PROBES] = {
#include "catalogue/probes.def"
};

__attribute__((visibility("default"))) const struct dt_lttng_provider dt_lttng_provider = {
    .count = DT_PROBES,
    .definition = dt_lttng_definitions,
    .state = state,
    .fire = fire,
};

/* LTTng replaces the list when a session enables or disables the tracepoint, and frees the old one
   after all readers have finished. */
__attribute__((visibility("default"))) size_t dt_lttng_consumers(const int *state, uint64_t *ids,
                                                                 size_t most) {
    const struct lttng_ust_tracepoint *tracepoint =
        caa_container_of(state, struct lttng_ust_tracepoint, state);
    const struct lttng_ust_tracepoint_probe *probe;
    size_t count = 0;

    if (!LTTNG_UST_TP_RCU_LINK_TEST())
        return 0;
    lttng_ust_tp_rcu_read_lock();
    probe = lttng_ust_tp_rcu_dereference(tracepoint->probes);
    for (; probe && probe->func && count < most; probe++)
        ids[count++] = (uintptr_t)probe->data;
    lttng_ust_tp_rcu_read_unlock();
    return count;
}
