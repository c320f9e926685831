/*
 * The backends together: whether a probe is enabled in any, and firing it in those.
 *
 * A backend has three functions, dt_<name>_is_enabled, dt_<name>_fire and dt_<name>_missing, in a
 * header of its name. The catalogue has the table of backends, BACKEND(name).
 */
#ifndef DT_BACKENDS_BACKENDS_H
#define DT_BACKENDS_BACKENDS_H

#include "backends/lttng.h"
#include "backends/usdt.h"

static inline bool dt_is_enabled(enum dt_probe probe) {
#define BACKEND(name) || dt_##name##_is_enabled(probe)
    return false
#include "catalogue/probes.def"
        ;
}

static inline void dt_fire(enum dt_probe probe, const union dt_event *event) {
#define BACKEND(name)                                                                              \
    if (dt_##name##_is_enabled(probe))                                                             \
        dt_##name##_fire(probe, event);
#include "catalogue/probes.def"
}

#endif
