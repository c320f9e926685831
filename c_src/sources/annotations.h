/*
 * Annotations: probes that Erlang code fires itself.
 *
 * dyntrace.erl first calls `wants_…` to check whether the probe is enabled. Only then does it read
 * the process's tag or the clock, and fire. Otherwise an annotation is one call that reads a
 * counter of each backend. dyntrace.erl checks the arguments, but all NIFs accept any.
 */
#ifndef DT_SOURCES_ANNOTATIONS_H
#define DT_SOURCES_ANNOTATIONS_H

#include "sources/nif.h"

/* true | false: whether the probe is enabled. */
dt_nif dt_annotation_wants_i4s4, dt_annotation_wants_mark, dt_annotation_wants_span;
dt_nif dt_annotation_wants_n; /* Label */

/* true | false: whether the probe was enabled, and fired. */
dt_nif dt_annotation_trace_s1;   /* Message */
dt_nif dt_annotation_trace_i4s4; /* Tag, I1, …, I4, S1, …, S4 */
dt_nif dt_annotation_trace_n;    /* Label, Tag, I1, …, I4, S1, …, S4 */
dt_nif dt_annotation_mark;       /* Name, Value, Text */
dt_nif dt_annotation_span_start; /* Name, Id */
dt_nif dt_annotation_span_stop;  /* Name, Id, Duration, Outcome */

#endif
