/* The fields of the probes as data, for code that does not depend on the probe. */
#pragma once

#include <glib.h>

#include "shared/recorded.h"

enum dt_field_type {
    DT_FIELD_IDENTIFIER, /* STR: a process, port or node, a location, a word */
    DT_FIELD_TERM,       /* TEXT */
    DT_FIELD_STRING,     /* STRING */
    DT_FIELD_int32,
    DT_FIELD_uint32,
    DT_FIELD_int64,
    DT_FIELD_uint64,
};

struct dt_probe_field {
    const char *name;
    const char *alias; /* another name in traces, or NULL */
    enum dt_field_type type;
    unsigned offset; /* in the probe's struct */
};

/* The fields of a probe in the order of the catalogue. The last one is followed by one without a
   name. */
const struct dt_probe_field *dt_probe_fields(enum dt_probe probe);

static inline bool dt_field_is_text(const struct dt_probe_field *field) {
    return field->type <= DT_FIELD_STRING;
}

/* The place of a text in an event. */
static inline const char **dt_field_text(union dt_event *event,
                                         const struct dt_probe_field *field) {
    return (const char **)(void *)((char *)event + field->offset);
}

/* The value of a number. */
int64_t dt_field_number(const union dt_event *event, const struct dt_probe_field *field);

/* Appends the recorded fields of an event: "pid: <0.131.0>, name: logger". */
void dt_fields_text(GString *to, const struct dt_recorded *event);
