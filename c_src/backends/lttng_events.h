/*
 * The catalogue as LTTng knows it. LTTng's header reads this file several times, each
 * time with other meanings of its macros; hence no plain include guard.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER org_erlang_dyntrace

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./dt_lttng_events.h"

#if !defined(DT_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DT_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

#include "dt_event.h"

#define STR(name, ...) lttng_ust_field_string(name, e->name)
#define STR_AS(name, lttng, ...) lttng_ust_field_string(lttng, e->name)
#define TEXT(name, ...) lttng_ust_field_string(name, e->name)
#define STRING(name, ...) lttng_ust_field_string(name, e->name)
#define INT(name, ...) lttng_ust_field_integer(int32_t, name, e->name)
#define LONG(name, ...) lttng_ust_field_integer(int64_t, name, e->name)
#define UINT(name, ...) lttng_ust_field_integer(uint32_t, name, e->name)
#define ULONG(name, ...) lttng_ust_field_integer(uint64_t, name, e->name)
#define ERLANG_PROBE(name, when, differs, fields...)
#define PROBE(name, when, fields...)                                                               \
    LTTNG_UST_TRACEPOINT_EVENT(org_erlang_dyntrace, name,                                          \
                               LTTNG_UST_TP_ARGS(const struct dt_##name *, e),                     \
                               LTTNG_UST_TP_FIELDS(fields))
#include "dt_probes.def"

#endif

#include <lttng/tracepoint-event.h>
