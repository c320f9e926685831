/*
 * Events: one C struct a probe, all from the catalogue.
 */
#ifndef DT_EVENT_H
#define DT_EVENT_H

#include <stdint.h>

/* The labels of a LABELED_PROBE are 0 to DT_LABELS - 1. */
enum { DT_LABELS = 951 };

/* struct dt_process_exit { const char *pid; const char *reason; }; … */
#define STR(name, ...) const char *name;
#define TEXT(name, ...) const char *name;
#define STRING(name, ...) const char *name;
#define INT(name, ...) int32_t name;
#define LONG(name, ...) int64_t name;
#define UINT(name, ...) uint32_t name;
#define ULONG(name, ...) uint64_t name;
#define PROBE(name, when, fields...)                                                               \
    struct dt_##name {                                                                             \
        fields                                                                                     \
    };
#include "dt_probes.def"

#define STR(name, ...) +1
#define TEXT(name, ...) +1
#define STRING(name, ...) +1
#define INT(name, ...) +1
#define LONG(name, ...) +1
#define UINT(name, ...) +1
#define ULONG(name, ...) +1
#define LTTNG_PROBE(name, when, fields...)
#define ERLANG_PROBE(name, when, differs, fields...)
#define PROBE(name, when, fields...)                                                               \
    _Static_assert(0 fields <= 6, #name " has more fields than bpftrace can read");
#include "dt_probes.def"

/* DT_process_spawn … : the probes by number, in the order of the catalogue. */
enum dt_probe {
#define PROBE(name, when, fields...) DT_##name,
#include "dt_probes.def"
    DT_PROBES
};

union dt_event {
#define PROBE(name, when, fields...) struct dt_##name name;
#include "dt_probes.def"
};

#endif
