/*
 * USDT: the probes as <sys/sdt.h> defines them. Each has one site, a nop that a tracer replaces by
 * a breakpoint, and one semaphore, a counter that the kernel or the tracer increments while a
 * consumer is attached. So one load shows whether the probe is enabled. A labeled probe consists of
 * one such probe per label, with separate functions, and a probe array of one per index.
 *
 * On systems with native DTrace (DT_DTRACE), `dtrace` makes the probes, and a call returns whether
 * one is enabled. With neither, no probe is ever enabled.
 */
#ifndef DT_BACKENDS_USDT_H
#define DT_BACKENDS_USDT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "catalogue/event.h"
#include "catalogue/probes.h"
#include "catalogue/unused.h"

#ifdef DT_NO_USDT

static inline bool dt_usdt_is_enabled(DT_UNUSED enum dt_probe probe) {
    return false;
}

static inline size_t dt_usdt_consumers_of(DT_UNUSED enum dt_probe probe, DT_UNUSED uint64_t *ids,
                                          DT_UNUSED size_t most) {
    return 0;
}

static inline void dt_usdt_fire(DT_UNUSED enum dt_probe probe,
                                DT_UNUSED const union dt_event *event) {
}

static inline bool dt_usdt_label_is_enabled(DT_UNUSED unsigned label) {
    return false;
}

static inline void dt_usdt_fire_label(DT_UNUSED unsigned label,
                                      DT_UNUSED const struct dt_user_trace__n *e) {
}

static inline bool dt_usdt_row_is_enabled(DT_UNUSED unsigned number) {
    return false;
}

static inline bool dt_usdt_missing(char *why, size_t size) {
    (void)snprintf(why, size, "built without sys/sdt.h (Debian: systemtap-sdt-dev)");
    return true;
}

#else
#ifdef DT_DTRACE

bool dt_usdt_is_enabled(enum dt_probe probe);
bool dt_usdt_label_is_enabled(unsigned label);
bool dt_usdt_row_is_enabled(unsigned number);

static inline size_t dt_usdt_count(enum dt_probe probe) {
    return dt_usdt_is_enabled(probe);
}

#else

extern volatile unsigned short *const dt_usdt_semaphores[DT_PROBES];
extern volatile unsigned short *const dt_usdt_label_semaphores[DT_LABELS];
extern volatile unsigned short *const dt_usdt_row_semaphores[DT_ROW];

static inline bool dt_usdt_is_enabled(enum dt_probe probe) {
    return *dt_usdt_semaphores[probe] != 0;
}

static inline size_t dt_usdt_count(enum dt_probe probe) {
    return *dt_usdt_semaphores[probe];
}

/* For labels below DT_LABELS. */
static inline bool dt_usdt_label_is_enabled(unsigned label) {
    return *dt_usdt_label_semaphores[label] != 0;
}

/* For numbers below DT_ROW. */
static inline bool dt_usdt_row_is_enabled(unsigned number) {
    return *dt_usdt_row_semaphores[number] != 0;
}

#endif

/* The consumers of a probe as numbers: the first one is 1. Tracers have no identity, and several
   may count as one: Linux counts a probe site once, and native DTrace reports only whether there
   are any. For a probe array, the indexes of the enabled probes. */
static inline size_t dt_usdt_consumers_of(enum dt_probe probe, uint64_t *ids, size_t most) {
    size_t count = 0;

    if (dt_probes[probe].is_row) {
        for (unsigned number = 0; number < DT_ROW && count < most; number++)
            if (dt_usdt_row_is_enabled(number))
                ids[count++] = number;
        return count;
    }
    count = dt_usdt_count(probe);
    count = count < most ? count : most;
    for (size_t i = 0; i < count; i++)
        ids[i] = i + 1;
    return count;
}

/* The probe must be enabled. */
void dt_usdt_fire(enum dt_probe probe, const union dt_event *event);
void dt_usdt_fire_label(unsigned label, const struct dt_user_trace__n *e);

/* Whether this backend is missing, and why. */
static inline bool dt_usdt_missing(char *why, DT_UNUSED size_t size) {
    *why = '\0';
    return false;
}

#endif
#endif
