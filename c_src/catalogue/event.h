/*
 * Events: one C struct per probe, generated from the catalogue, and the maximum sizes of its texts.
 */
#ifndef DT_CATALOGUE_EVENT_H
#define DT_CATALOGUE_EVENT_H

#include <stdint.h>

/* The labels of a LABELED_PROBE are 0 to DT_LAST_LABEL, which is MAX_LABEL in Erlang
   (src/facade/dyntrace_annotation.hrl). */
#define DT_LAST_LABEL 950
enum { DT_LABELS = DT_LAST_LABEL + 1 };

/* The indexes of a ROW are 0 to DT_LAST_OF_ROW; the name of its first probe has no index. */
#define DT_LAST_OF_ROW 29
enum { DT_ROW = DT_LAST_OF_ROW + 1 };

enum {
    /* The maximum size of the text of a term, including the "..." of a cut one. */
    DT_TERM_MAX = 256,

    /* The maximum size of a string that a program passes. */
    DT_STRING_MAX = 1024,
};

/* struct dt_process_exit { const char *pid; const char *reason; }; … */
#define STR(name, ...) const char *name;
#define NUMBER(type, name, ...) type##_t name;
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    struct dt_##name {                                                                             \
        fields                                                                                     \
    };
#include "catalogue/probes.def"

/* DT_process_spawn … : the numbers of the probes, in the order of the catalogue. */
enum dt_probe {
#define PROBE(name, ...) DT_##name,
#include "catalogue/probes.def"
    DT_PROBES
};

union dt_event {
#define PROBE(name, ...) struct dt_##name name;
#include "catalogue/probes.def"
};

#endif
