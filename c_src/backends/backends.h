/*
 * The backends together: whether a probe is enabled in any, and firing it in those.
 */
#ifndef DT_BACKENDS_H
#define DT_BACKENDS_H

#include "dt_lttng.h"
#include "dt_usdt.h"

static inline bool dt_listening(enum dt_probe probe) {
    return dt_usdt_listening(probe) || dt_lttng_listening(probe);
}

static inline void dt_fire(enum dt_probe probe, const union dt_event *event) {
    if (dt_usdt_listening(probe))
        dt_usdt_fire(probe, event);
    if (dt_lttng_listening(probe))
        dt_lttng_fire(probe, event);
}

#endif
