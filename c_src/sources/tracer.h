/*
 * The tracer: the callbacks of the erl_tracer contract, as NIFs.
 *
 * They run inside the traced process or port, on its scheduler, and accept any arguments, because
 * Erlang code may call them, too. ARCHITECTURE.md, "Callback invariants", lists what they must not
 * do, the state that they keep and the allocations that they cause.
 */
#ifndef DT_SOURCES_TRACER_H
#define DT_SOURCES_TRACER_H

#include <stdint.h>

#include "catalogue/event.h"
#include "sources/nif.h"

/* enabled/3 and trace/5; for each group of callbacks, enabled_<group>/3 and trace_<group>/5. */
dt_nif dt_tracer_enabled, dt_tracer_trace;
#define INFO_GROUP(group)
#define MODULE_GROUP(group, module)
#define GROUP(group) dt_nif dt_tracer_enabled_##group, dt_tracer_trace_##group;
#include "sources/routes.def"

/* The number of events of the probe that could not be decoded; for DT_PROBES, of those of an
   unknown tag or without a term. */
uint64_t dt_tracer_undecoded(enum dt_probe probe);

#endif
