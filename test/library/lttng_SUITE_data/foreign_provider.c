/* A provider of our name with a tracepoint of our name that takes texts, as the one of
   a VM that was built with LTTng does. */
#ifndef FOREIGN_PROVIDER
#define FOREIGN_PROVIDER
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER org_erlang_dyntrace
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./foreign_provider.c"

#if !defined(FOREIGN_EVENTS) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define FOREIGN_EVENTS
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(org_erlang_dyntrace, message_send,
                           LTTNG_UST_TP_ARGS(char *, from, char *, to, char *, message),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(from, from)
                                               lttng_ust_field_string(to, to)
                                               lttng_ust_field_string(message, message)))
#endif
#include <lttng/tracepoint-event.h>
