/*
 * The catalogue as data: the description of each probe.
 */
#ifndef DT_CATALOGUE_PROBES_H
#define DT_CATALOGUE_PROBES_H

#include <erl_nif.h>
#include <stdbool.h>

#include "catalogue/event.h"

/* DT_BACKEND_lttng … : bits of a set of backends */
enum dt_backend {
#define BACKEND(name) DT_BACKEND_##name,
#include "catalogue/probes.def"
    DT_BACKENDS
};

/* DT_IN_gc … : bits of a set of event groups */
enum dt_event_group {
#define EVENT_GROUP(name) DT_IN_##name,
#include "catalogue/probes.def"
    DT_EVENT_GROUPS
};
extern const char *const dt_event_group_names[DT_EVENT_GROUPS];

struct dt_field {
    const char *name; /* NULL terminates a probe's fields */
    const ERL_NIF_TERM *type;
    unsigned max_bytes; /* 0: never cut */
    const char *unit;   /* NULL: a text */
    const char *meaning;
    const char *text_example;
    int64_t number_example;
};

struct dt_probe_info {
    const char *name;
    const ERL_NIF_TERM *provider;
    unsigned backends; /* 1 << DT_BACKEND_lttng | … */
    bool is_labeled;   /* a probe for each label */
    bool is_row;       /* a probe array */
    const char *when;
    const char *differs; /* empty: no difference */
    const struct dt_field *fields;
};

extern const struct dt_probe_info dt_probes[DT_PROBES];

/* The source that reports the events; NULL: they are trace events or annotations. */
extern const char *const dt_probe_sources[DT_PROBES];

/* 1 << DT_IN_gc | … */
extern const unsigned dt_probe_event_groups[DT_PROBES];

/* reported | derived | never */
extern const ERL_NIF_TERM *const dt_probe_kinds[DT_PROBES];

#endif
