#include "dt_usdt.h"

#ifndef DT_NO_USDT

#define _SDT_HAS_SEMAPHORES 1 /* NOLINT(bugprone-reserved-identifier): its name */
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

/* Tracers find a semaphore by its address in the probe's note and write there; only
   its section and its name are fixed. */
#define PROBE(name, when, fields)                                                                  \
    volatile unsigned short org_erlang_dyntrace_##name##_semaphore                                 \
        __attribute__((section(".probes")));
#include "dt_probes.def"

#define PROBE(name, when, fields) &org_erlang_dyntrace_##name##_semaphore,
volatile unsigned short *const dt_usdt_semaphores[DT_PROBES] = {
#include "dt_probes.def"
};

/* One function a probe, never inlined or cloned: a probe with several sites loses
   events in some tracers. */
#define RESCAN(macro, ...) macro(__VA_ARGS__)
#define STR(name, ...) , e->name
#define TEXT(name, ...) , e->name
#define UINT(name, ...) , e->name
#define ULONG(name, ...) , e->name
#define PROBE(name, when, fields)                                                                  \
    static __attribute__((noinline)) void fire_##name(const union dt_event *event) {               \
        const struct dt_##name *e = &event->name;                                                  \
                                                                                                   \
        RESCAN(STAP_PROBEV, org_erlang_dyntrace, name fields);                                     \
    }
#include "dt_probes.def"

#define PROBE(name, when, fields) fire_##name,
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "dt_probes.def"
};

void dt_usdt_fire(enum dt_probe probe, const union dt_event *event) {
    fire[probe](event);
}

#endif
