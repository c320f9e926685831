/*
 * LTTng: the probes as tracepoints of a provider that is loaded at run time.
 *
 *     dyntrace.so                                dyntrace_lttng.so (linked to liblttng-ust)
 *       provider ──┬── nobody    until loaded      dt_lttng_provider
 *                  └──────────────────────────────>  .catalogue  what it was built of
 *                                                    .state[]    not 0: enabled in a session
 *                                                    .fire[]
 *
 * Loading is asked for once and may end later: a session daemon that is there but does
 * not answer holds liblttng-ust up for three seconds, and no scheduler waits for that.
 */
#ifndef DT_LTTNG_H
#define DT_LTTNG_H

#include <stdatomic.h>
#include <stdbool.h>

#include "dt_event.h"

/* The catalogue as one string; a provider that was built of another one is not used. */
#define STR(name, ...) " str " #name
#define TEXT(name, ...) " str " #name
#define UINT(name, ...) " u32 " #name
#define ULONG(name, ...) " u64 " #name
#define PROBE(name, when, fields) #name fields ";"
static const char dt_catalogue[] =
#include "dt_probes.def"
    ;

/* What the provider's library exports, under the name dt_lttng_provider. */
struct dt_lttng_provider {
    const char *catalogue;
    const int *state[DT_PROBES];
    void (*fire[DT_PROBES])(const union dt_event *event);
};

extern _Atomic(const struct dt_lttng_provider *) dt_lttng_current;

static inline bool dt_lttng_listening(enum dt_probe probe) {
    const struct dt_lttng_provider *provider =
        atomic_load_explicit(&dt_lttng_current, memory_order_acquire);

    return *(const volatile int *)provider->state[probe] != 0;
}

static inline void dt_lttng_fire(enum dt_probe probe, const union dt_event *event) {
    atomic_load_explicit(&dt_lttng_current, memory_order_acquire)->fire[probe](event);
}

/* Loads the provider from that path, unless it is loaded or being loaded. Waits for at
   most DT_LTTNG_WAIT_MS. */
enum { DT_LTTNG_WAIT_MS = 50 };
void dt_lttng_load(const char *path);

/* Takes over the provider of the library that this one replaces, if it is built of the
   same catalogue, so that it is not registered twice. */
void dt_lttng_inherit(const struct dt_lttng_provider *provider);

/* Why this backend is not there, or NULL. */
const char *dt_lttng_missing(void);

#endif
