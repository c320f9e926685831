/*
 * Reports: events that come neither from a tracer callback nor from an annotation. The application
 * observes them (src/sources/dyntrace_source.erl), and passes the values of the probe's fields.
 */
#ifndef DT_SOURCES_REPORTS_H
#define DT_SOURCES_REPORTS_H

#include "sources/nif.h"

/* Probe, {Value, …}: one value per field, in order. For a number, an integer in its range; for a
   text, a string, or an atom, pid, port or reference, which is written as in Erlang; for a free
   term, any term. Fires if the probe is enabled and allowed. */
dt_nif dt_report;

#endif
