/*
 * Which object of this process provides LTTng's tracepoints of a provider: a library of another
 * version of dyntrace, one of somebody else, or the VM itself, if it was built with LTTng.
 */
#ifndef DT_BACKENDS_LTTNG_FIND_PROVIDER_H
#define DT_BACKENDS_LTTNG_FIND_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an object of this process provides it. Its name goes to `object`. `library` becomes the
   handle of a library of dyntrace, for dlsym(); NULL for any other object. */
bool dt_lttng_find(const char *provider, char *object, size_t size, void **library);

#endif
