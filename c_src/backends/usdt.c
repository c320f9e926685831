#include "backends/usdt.h"

#include "catalogue/choose.h"

#ifndef DT_NO_USDT

#define _SDT_HAS_SEMAPHORES 1 /* NOLINT(bugprone-reserved-identifier): its name */
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

/* -- The labels ------------------------------------------------------------------ */

/* clang-format off */
/* M(0, …) to M(DT_LAST_LABEL, …): TEN(M, 4, …) is M(40, …) to M(49, …). */
#define TEN(M, n, ...)                                                                             \
    M(n##0, __VA_ARGS__) M(n##1, __VA_ARGS__) M(n##2, __VA_ARGS__) M(n##3, __VA_ARGS__)            \
    M(n##4, __VA_ARGS__) M(n##5, __VA_ARGS__) M(n##6, __VA_ARGS__) M(n##7, __VA_ARGS__)            \
    M(n##8, __VA_ARGS__) M(n##9, __VA_ARGS__)
#define HUNDRED(M, n, ...)                                                                         \
    TEN(M, n##0, __VA_ARGS__) TEN(M, n##1, __VA_ARGS__) TEN(M, n##2, __VA_ARGS__)                  \
    TEN(M, n##3, __VA_ARGS__) TEN(M, n##4, __VA_ARGS__) TEN(M, n##5, __VA_ARGS__)                  \
    TEN(M, n##6, __VA_ARGS__) TEN(M, n##7, __VA_ARGS__) TEN(M, n##8, __VA_ARGS__)                  \
    TEN(M, n##9, __VA_ARGS__)
#define EACH_LABEL(M, ...)                                                                         \
    M(0, __VA_ARGS__) M(1, __VA_ARGS__) M(2, __VA_ARGS__)                                          \
    M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(5, __VA_ARGS__)                                          \
    M(6, __VA_ARGS__) M(7, __VA_ARGS__) M(8, __VA_ARGS__)                                          \
    M(9, __VA_ARGS__) TEN(M, 1, __VA_ARGS__) TEN(M, 2, __VA_ARGS__)                                \
    TEN(M, 3, __VA_ARGS__) TEN(M, 4, __VA_ARGS__) TEN(M, 5, __VA_ARGS__)                           \
    TEN(M, 6, __VA_ARGS__) TEN(M, 7, __VA_ARGS__) TEN(M, 8, __VA_ARGS__)                           \
    TEN(M, 9, __VA_ARGS__) HUNDRED(M, 1, __VA_ARGS__) HUNDRED(M, 2, __VA_ARGS__)                   \
    HUNDRED(M, 3, __VA_ARGS__) HUNDRED(M, 4, __VA_ARGS__) HUNDRED(M, 5, __VA_ARGS__)               \
    HUNDRED(M, 6, __VA_ARGS__) HUNDRED(M, 7, __VA_ARGS__) HUNDRED(M, 8, __VA_ARGS__)               \
    TEN(M, 90, __VA_ARGS__) TEN(M, 91, __VA_ARGS__) TEN(M, 92, __VA_ARGS__)                        \
    TEN(M, 93, __VA_ARGS__) TEN(M, 94, __VA_ARGS__) M(950, __VA_ARGS__)
/* clang-format on */

#define COUNT(label, ...) +1
_Static_assert(0 EACH_LABEL(COUNT, 0) == DT_LABELS, "DT_LAST_LABEL is not the last one here");

/* Of each probe, what this backend has of it. */
#define ON_usdt , 1,

/* -- Semaphores ------------------------------------------------------------------ */

/* Tracers find a semaphore by its address in the probe's note and write there; only
   its section and its name are fixed. */
#define SEMAPHORE(name, provider)                                                                  \
    volatile unsigned short provider##_##name##_semaphore __attribute__((section(".probes")));
#define LABEL_SEMAPHORE(label, name, provider) SEMAPHORE(name##label, provider)

#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE(SEMAPHORE, DT_NOTHING, backends)(name, provider)
#define LABELED_PROBE(name, provider, ...) EACH_LABEL(LABEL_SEMAPHORE, name, provider)
#include "catalogue/probes.def"

/* Always zero: for probes without a USDT site of their own. */
static volatile unsigned short never;

#define ADDRESS(name, provider) &provider##_##name##_semaphore,
#define NEVER(...) &never,
#define PROBE(name, provider, backends, ...) DT_CHOOSE(ADDRESS, NEVER, backends)(name, provider)
#define LABELED_PROBE(...) NEVER()
volatile unsigned short *const dt_usdt_semaphores[DT_PROBES] = {
#include "catalogue/probes.def"
};

#define LABEL_ADDRESS(label, name, provider) ADDRESS(name##label, provider)
#define LABELED_PROBE(name, provider, ...) EACH_LABEL(LABEL_ADDRESS, name, provider)
volatile unsigned short *const dt_usdt_label_semaphores[DT_LABELS] = {
#include "catalogue/probes.def"
};

/* -- Sites ----------------------------------------------------------------------- */

#define RESCAN(macro, ...) macro(__VA_ARGS__)
#define LIST(...) __VA_ARGS__

/* One function per probe, never inlined or cloned: a probe with several sites loses
   events in some tracers. */
#define SITE(name, provider, fields...)                                                            \
    static __attribute__((noinline)) void fire_##name(const union dt_event *event) {               \
        const struct dt_##name *e = &event->name;                                                  \
                                                                                                   \
        RESCAN(STAP_PROBEV, provider, name fields);                                                \
    }
#define LABEL_SITE(label, name, provider, fields)                                                  \
    case label:                                                                                    \
        RESCAN(STAP_PROBEV, provider, name##label LIST fields);                                    \
        return;

#define FIELD(name) , e->name
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    DT_CHOOSE(SITE, DT_NOTHING, backends)(name, provider, fields)
#define LABELED_PROBE(name, provider, backends, when, differs, fields...)                          \
    __attribute__((noinline)) void dt_usdt_fire_label(unsigned label, const struct dt_##name *e) { \
        switch (label) { EACH_LABEL(LABEL_SITE, name, provider, (fields)) }                        \
    }
#include "catalogue/probes.def"

/* NULL for a probe without a site of its own, which is never enabled. */
#define FIRE_ENTRY(name) [DT_##name] = fire_##name,
#define PROBE(name, provider, backends, ...) DT_CHOOSE(FIRE_ENTRY, DT_NOTHING, backends)(name)
#define LABELED_PROBE(...)
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "catalogue/probes.def"
};

void dt_usdt_fire(enum dt_probe probe, const union dt_event *event) {
    fire[probe](event);
}

#endif
