/*
 * Reports: events that neither a tracer callback nor an annotation yields. The application notices
 * them (src/sources/dyntrace_source.erl), and passes the values of the probe's fields.
 */
#ifndef DT_SOURCES_REPORTS_H
#define DT_SOURCES_REPORTS_H

#include "sources/nif.h"

/* Probe, {Value, …}: a value for each field, in their order. For a number an integer that fits; for
   a text a string, or an atom, pid, port or reference, as Erlang writes it; for a free term any
   term. Fires if the probe is enabled and allowed. */
dt_nif dt_report;

#endif
