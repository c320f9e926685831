/*
 * Which object of this process provides LTTng's tracepoints of a provider: a library of another
 * version of dyntrace, one of somebody else, or the VM itself, if it was built with LTTng.
 */
#ifndef DT_BACKENDS_LTTNG_FIND_H
#define DT_BACKENDS_LTTNG_FIND_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an object of this process provides it. Its name goes to `object`, and to `library` what a
   library of dyntrace exports as dt_lttng_provider; NULL for any other. */
struct dt_lttng_provider;
bool dt_lttng_find(const char *provider, char *object, size_t size,
                   const struct dt_lttng_provider **library);

#endif
