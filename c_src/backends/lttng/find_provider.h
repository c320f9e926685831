/*
 * Finds the object of this process that provides the LTTng tracepoints of a provider: a library of
 * another version of dyntrace, another library, or the VM itself, if it was built with LTTng.
 */
#ifndef DT_BACKENDS_LTTNG_FIND_PROVIDER_H
#define DT_BACKENDS_LTTNG_FIND_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an object of this process provides it. Writes its name to `object`. Sets `library` to the
   handle of a dyntrace library, for dlsym(), or to NULL for any other object. */
bool dt_lttng_find(const char *provider, char *object, size_t size, void **library);

#endif
