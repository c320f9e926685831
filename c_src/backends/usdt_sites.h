/*
 * The sites of the probes, for the source file that implements the backend. It defines
 *
 *   FIRE(provider, name, arguments...)   fires a probe, as a statement
 *   TEXT_OF(text)                        a text, as the type that FIRE takes
 */
#include "backends/usdt.h"
#include "backends/usdt_labels.h"
#include "catalogue/choose.h"

#define COUNT(label, ...) +1
_Static_assert(0 EACH_LABEL(COUNT, 0) == DT_LABELS, "DT_LAST_LABEL is not the last one here");
_Static_assert(0 EACH_OF_ROW(COUNT, 0) == DT_ROW, "DT_LAST_OF_ROW is not the last one here");

#define RESCAN(macro, ...) macro(__VA_ARGS__)
#define LIST(...) __VA_ARGS__

/* One function per probe, never inlined or cloned: some tracers lose events of a probe with several
   sites. */
#define SITE(name, provider, fields...)                                                            \
    static __attribute__((noinline)) void fire_##name(const union dt_event *event) {               \
        const struct dt_##name *e = &event->name;                                                  \
                                                                                                   \
        RESCAN(FIRE, provider, name fields);                                                       \
    }
#define LABEL_SITE(label, name, provider, fields)                                                  \
    case label + 0:                                                                                \
        RESCAN(FIRE, provider, name##label LIST fields);                                           \
        return;

#define FIELD(name) , e->name
#define STR(name, ...) , TEXT_OF(e->name)
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    DT_CHOOSE(SITE, DT_NOTHING, backends)(name, provider, fields)
#define LABELED_PROBE(name, provider, backends, when, differs, fields...)                          \
    __attribute__((noinline)) void dt_usdt_fire_label(unsigned label, const struct dt_##name *e) { \
        switch (label) { EACH_LABEL(LABEL_SITE, name, provider, (fields)) }                        \
    }
#define ROW(name, provider, backends, when, differs, fields...)                                    \
    static __attribute__((noinline)) void fire_##name(const union dt_event *event) {               \
        const struct dt_##name *e = &event->name;                                                  \
                                                                                                   \
        switch (e->number) { EACH_OF_ROW(LABEL_SITE, name, provider, (fields)) }                   \
    }
#include "catalogue/probes.def"

/* NULL for a probe without a site, which is never enabled. */
#define FIRE_ENTRY(name) [DT_##name] = fire_##name,
#define PROBE(name, provider, backends, ...) DT_CHOOSE(FIRE_ENTRY, DT_NOTHING, backends)(name)
#define LABELED_PROBE(...)
static void (*const fire[DT_PROBES])(const union dt_event *event) = {
#include "catalogue/probes.def"
};

void dt_usdt_fire(enum dt_probe probe, const union dt_event *event) {
    fire[probe](event);
}
