#include "backends/usdt.h"

#include "backends/usdt_labels.h"
#include "catalogue/choose.h"

#ifndef DT_NO_USDT

#define _SDT_HAS_SEMAPHORES 1 /* NOLINT(bugprone-reserved-identifier): its name */
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

/* Selects the probes of this backend. */
#define ON_usdt , 1,

/* -- Semaphores ------------------------------------------------------------------ */

/* Tracers find a semaphore by its address in the probe's note, and write to it; only its section
   and its name are fixed. */
#define SEMAPHORE(name, provider)                                                                  \
    volatile unsigned short provider##_##name##_semaphore __attribute__((section(".probes")));
#define LABEL_SEMAPHORE(label, name, provider) SEMAPHORE(name##label, provider)

#define PROBE(name, provider, backends, ...)                                                       \
    DT_CHOOSE(SEMAPHORE, DT_NOTHING, backends)(name, provider)
#define LABELED_PROBE(name, provider, ...) EACH_LABEL(LABEL_SEMAPHORE, name, provider)
#define ROW(name, provider, ...) EACH_OF_ROW(LABEL_SEMAPHORE, name, provider)
#include "catalogue/probes.def"

/* Always zero: for probes without a USDT site. */
static volatile unsigned short never;

#define ADDRESS(name, provider) &provider##_##name##_semaphore,
#define NEVER(...) &never,
#define PROBE(name, provider, backends, ...) DT_CHOOSE(ADDRESS, NEVER, backends)(name, provider)
#define LABELED_PROBE(...) NEVER()
#define ROW(...) NEVER()
volatile unsigned short *const dt_usdt_semaphores[DT_PROBES] = {
#include "catalogue/probes.def"
};

#define LABEL_ADDRESS(label, name, provider) ADDRESS(name##label, provider)
#define LABELED_PROBE(name, provider, ...) EACH_LABEL(LABEL_ADDRESS, name, provider)
volatile unsigned short *const dt_usdt_label_semaphores[DT_LABELS] = {
#include "catalogue/probes.def"
};

#define ROW(name, provider, ...) EACH_OF_ROW(LABEL_ADDRESS, name, provider)
volatile unsigned short *const dt_usdt_row_semaphores[DT_ROW] = {
#include "catalogue/probes.def"
};

/* -- Sites ----------------------------------------------------------------------- */

#define FIRE STAP_PROBEV
#define TEXT_OF(text) text
#include "backends/usdt_sites.h"

#endif
