/*
 * All backends: whether a probe is enabled in any of them, and firing it.
 *
 * A backend has four functions, dt_<name>_is_enabled, dt_<name>_consumers_of, dt_<name>_fire and
 * dt_<name>_missing, in a header of its name. The catalogue lists the backends: BACKEND(name).
 */
#ifndef DT_BACKENDS_BACKENDS_H
#define DT_BACKENDS_BACKENDS_H

#include "backends/lttng/lttng.h"
#include "backends/usdt.h"
#include "catalogue/probes.h"

static inline bool dt_is_enabled(enum dt_probe probe) {
#define BACKEND(name) || dt_##name##_is_enabled(probe)
    return false
#include "catalogue/probes.def"
        ;
}

/* The set of backends in which the probe is enabled, as bits 1 << DT_BACKEND_lttng | … */
static inline unsigned dt_enabled_in(enum dt_probe probe) {
#define BACKEND(name) | (unsigned)dt_##name##_is_enabled(probe) << DT_BACKEND_##name
    return 0U
#include "catalogue/probes.def"
        ;
}

/* Fires the probe in these backends. It must be enabled in each of them. */
static inline void dt_fire_in(unsigned backends, enum dt_probe probe, const union dt_event *event) {
#define BACKEND(name)                                                                              \
    if (backends & 1U << DT_BACKEND_##name)                                                        \
        dt_##name##_fire(probe, event);
#include "catalogue/probes.def"
}

static inline void dt_fire(enum dt_probe probe, const union dt_event *event) {
    dt_fire_in(dt_enabled_in(probe), probe, event);
}

#endif
