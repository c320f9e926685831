/*
 * USDT where DTrace is native: by the macros that `dtrace -h` makes of the catalogue. Each probe
 * has a macro that fires it and one that tells whether it is enabled; DTrace replaces the calls in
 * both.
 */
#include <stdint.h>

/* Made by the Makefile: the macros, and FIRE_<provider>_<name> and ENABLED_<provider>_<name>. */
#include <dyntrace_provider.h>

#include "backends/usdt.h"
#include "backends/usdt_labels.h"
#include "catalogue/choose.h"

/* Of each probe, what this backend has of it. */
#define ON_usdt , 1,

/* -- Is a probe enabled ------------------------------------------------------------ */

#define IS_ENABLED(name, provider)                                                                 \
    static bool name##_is_enabled(void) {                                                          \
        return ENABLED_##provider##_##name() != 0;                                                 \
    }
#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE(IS_ENABLED, DT_NOTHING, backends)(name, provider)
#define LABELED_PROBE(...)
#define ROW(...)
#include "catalogue/probes.def"

/* For probes without a USDT site of their own. */
static bool never(void) {
    return false;
}

#define ENTRY(name) name##_is_enabled,
#define NEVER(...) never,
#define PROBE(name, provider, backends, ...) DT_CHOOSE(ENTRY, NEVER, backends)(name)
#define LABELED_PROBE(...) NEVER()
#define ROW(...) NEVER()
static bool (*const is_enabled[DT_PROBES])(void) = {
#include "catalogue/probes.def"
};

bool dt_usdt_is_enabled(enum dt_probe probe) {
    return is_enabled[probe]();
}

#define LABEL_IS_ENABLED(label, name, provider)                                                    \
    case label + 0:                                                                                \
        return ENABLED_##provider##_##name##label() != 0;
#define LABELED_PROBE(name, provider, ...) EACH_LABEL(LABEL_IS_ENABLED, name, provider)
/* NOLINTNEXTLINE(readability-function-size): a case per label */
bool dt_usdt_label_is_enabled(unsigned label) {
    switch (label) {
#include "catalogue/probes.def"
    }
    return false;
}

#define ROW(name, provider, ...) EACH_OF_ROW(LABEL_IS_ENABLED, name, provider)
bool dt_usdt_row_is_enabled(unsigned number) {
    switch (number) {
#include "catalogue/probes.def"
    }
    return false;
}

/* -- Sites ----------------------------------------------------------------------- */

/* The empty statement keeps the call from becoming a jump: DTrace replaces it by a nop, after which
   the function has to return. */
#define FIRE(provider, name, ...)                                                                  \
    do {                                                                                           \
        FIRE_##provider##_##name(__VA_ARGS__);                                                     \
        __asm__ volatile("");                                                                      \
    } while (0)
#define TEXT_OF(text) (char *)(uintptr_t)(text)
#include "backends/usdt_sites.h"
