/*
 * LTTng's definitions of the tracepoints of one provider, DT_LTTNG_PROVIDER, for which OF_<its
 * name> is defined as for DT_CHOOSE_OF.
 *
 * LTTng's header includes this file several times with different definitions of its macros, so
 * it has no include guard.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER DT_LTTNG_PROVIDER

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./backends/lttng/tracepoints.h"

#include <lttng/tracepoint.h>

#include "catalogue/choose.h"
#include "catalogue/event.h"

/* LTTng copies strings byte by byte, in case another thread changes them meanwhile. Ours are
   constant or on the callback's stack, so they are copied as blocks of the size that LTTng has
   measured, including the NUL. */
#define event_strcpy(to, string, size) event_write(to, string, size, 1)

#define TRACEPOINT(provider, name, fields...)                                                      \
    LTTNG_UST_TRACEPOINT_EVENT(provider, name, LTTNG_UST_TP_ARGS(const struct dt_##name *, e),     \
                               LTTNG_UST_TP_FIELDS(fields))

#define ON_lttng , 1,
#define STR(name, ...) lttng_ust_field_string(name, e->name)
#define STR_AS(name, lttng, ...) lttng_ust_field_string(lttng, e->name)
#define NUMBER(type, name, ...) lttng_ust_field_integer(type##_t, name, e->name)
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    DT_CHOOSE_OF(TRACEPOINT, DT_NOTHING, provider, backends)(provider, name, fields)
#include "catalogue/probes.def"
#undef ON_lttng
#undef TRACEPOINT

#include <lttng/tracepoint-event.h>
#undef event_strcpy
