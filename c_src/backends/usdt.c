#include "dt_usdt.h"

#ifndef DT_NO_USDT

#define _SDT_HAS_SEMAPHORES 1 /* NOLINT(bugprone-reserved-identifier): its name */
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

/* -- The labels ------------------------------------------------------------------ */

/* clang-format off */
/* M(0, …) to M(950, …): TEN(M, 4, …) is M(40, …) to M(49, …). */
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
_Static_assert(0 EACH_LABEL(COUNT, 0) == DT_LABELS, "a label without a probe, or one too many");

/* -- Semaphores ------------------------------------------------------------------ */

/* Tracers find a semaphore by its address in the probe's note and write there; only
   its section and its name are fixed. */
#define SEMAPHORE(provider, name)                                                                  \
    volatile unsigned short provider##_##name##_semaphore __attribute__((section(".probes")));

#define LABEL_SEMAPHORE(label, name) SEMAPHORE(erlang, name##label)

#define PROBE(name, when, fields...) SEMAPHORE(org_erlang_dyntrace, name)
#define ERLANG_PROBE(name, when, differs, fields...) SEMAPHORE(erlang, name)
#define LTTNG_PROBE(name, when, fields...)
#define LABELED_PROBE(name, when, differs, fields...) EACH_LABEL(LABEL_SEMAPHORE, name)
#include "dt_probes.def"

/* Of a probe that is none here, or one of many. */
static volatile unsigned short never;

#define PROBE(name, when, fields...) &org_erlang_dyntrace_##name##_semaphore,
#define ERLANG_PROBE(name, when, differs, fields...) &erlang_##name##_semaphore,
#define LTTNG_PROBE(name, when, fields...) &never,
#define LABELED_PROBE(name, when, differs, fields...) &never,
volatile unsigned short *const dt_usdt_semaphores[DT_PROBES] = {
#include "dt_probes.def"
};

#define LABEL_SEMAPHORE_ADDRESS(label, name) &erlang_##name##label##_semaphore,
#define PROBE(name, when, fields...)
#define LABELED_PROBE(name, when, differs, fields...) EACH_LABEL(LABEL_SEMAPHORE_ADDRESS, name)
volatile unsigned short *const dt_usdt_label_semaphores[DT_LABELS] = {
#include "dt_probes.def"
};

/* -- Sites ----------------------------------------------------------------------- */

#define RESCAN(macro, ...) macro(__VA_ARGS__)
#define LIST(...) __VA_ARGS__
#define STR(name, ...) , e->name
#define TEXT(name, ...) , e->name
#define STRING(name, ...) , e->name
#define INT(name, ...) , e->name
#define LONG(name, ...) , e->name
#define UINT(name, ...) , e->name
#define ULONG(name, ...) , e->name

/* One function a probe, never inlined or cloned: a probe with several sites loses
   events in some tracers. */
#define FIRE(provider, name, fields...)                                                            \
    static __attribute__((noinline)) void fire_##name(const union dt_event *event) {               \
        const struct dt_##name *e = &event->name;                                                  \
                                                                                                   \
        RESCAN(STAP_PROBEV, provider, name fields);                                                \
    }
#define PROBE(name, when, fields...) FIRE(org_erlang_dyntrace, name, fields)
#define ERLANG_PROBE(name, when, differs, fields...) FIRE(erlang, name, fields)
#define LABEL_SITE(label, name, fields)                                                            \
    case label:                                                                                    \
        RESCAN(STAP_PROBEV, erlang, name##label LIST fields);                                      \
        return;
#define LTTNG_PROBE(name, when, fields...)
#define LABELED_PROBE(name, when, differs, fields...)                                              \
    __attribute__((noinline)) void dt_usdt_fire_label(unsigned label, const struct dt_##name *e) { \
        switch (label) { EACH_LABEL(LABEL_SITE, name, (fields)) }                                  \
    }
#include "dt_probes.def"

static void fire_nothing(const union dt_event *event) {
    (void)event;
}

#define PROBE(name, when, fields...) fire_##name,
#define LTTNG_PROBE(name, when, fields...) fire_nothing,
#define LABELED_PROBE(name, when, differs, fields...) fire_nothing,
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "dt_probes.def"
};

void dt_usdt_fire(enum dt_probe probe, const union dt_event *event) {
    fire[probe](event);
}

#endif
