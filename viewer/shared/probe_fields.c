#include "shared/probe_fields.h"

#include <inttypes.h>
#include <stddef.h>

#define FIELD_OF(name, alias, type) {#name, alias, DT_FIELD_##type, (unsigned)offsetof(here, name)},
#define STR(name, ...) FIELD_OF(name, NULL, IDENTIFIER)
#define STR_AS(name, lttng, ...) FIELD_OF(name, #lttng, IDENTIFIER)
#define TEXT(name, ...) FIELD_OF(name, NULL, TERM)
#define STRING(name, ...) FIELD_OF(name, NULL, STRING)
#define NUMBER(type, name, ...) FIELD_OF(name, NULL, type)
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    static const struct dt_probe_field *fields_of_##name(void) {                                   \
        typedef struct dt_##name here __attribute__((unused));                                     \
        static const struct dt_probe_field all[] = {fields{NULL, NULL, DT_FIELD_IDENTIFIER, 0}};   \
                                                                                                   \
        return all;                                                                                \
    }
#include "catalogue/probes.def"

const struct dt_probe_field *dt_probe_fields(enum dt_probe probe) {
    static const struct dt_probe_field *(*const of[DT_PROBES])(void) = {
#define PROBE(name, ...) fields_of_##name,
#include "catalogue/probes.def"
    };

    return of[probe]();
}

int64_t dt_field_number(const union dt_event *event, const struct dt_probe_field *field) {
    const void *at = (const char *)event + field->offset;

    switch (field->type) {
    case DT_FIELD_int32:
        return *(const int32_t *)at;
    case DT_FIELD_uint32:
        return *(const uint32_t *)at;
    case DT_FIELD_int64:
    case DT_FIELD_uint64:
        return *(const int64_t *)at;
    default:
        return DT_NO_VALUE;
    }
}

void dt_fields_text(GString *to, const struct dt_recorded *event) {
    const struct dt_probe_field *all = dt_probe_fields(event->probe);
    union dt_event fields = event->fields;
    const char *separator = "";

    for (unsigned n = 0; all[n].name; n++) {
        if (!(event->has >> n & 1))
            continue;
        g_string_append_printf(to, "%s%s: ", separator, all[n].name);
        separator = ", ";
        if (dt_field_is_text(&all[n]))
            g_string_append(to, *dt_field_text(&fields, &all[n]));
        else if (all[n].type == DT_FIELD_uint64)
            g_string_append_printf(to, "%" PRIu64, (uint64_t)dt_field_number(&fields, &all[n]));
        else
            g_string_append_printf(to, "%" PRId64, dt_field_number(&fields, &all[n]));
    }
}
