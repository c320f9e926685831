#include "catalogue/probes.h"

#include "catalogue/atoms.h"

#define LAST_LABEL_TEXT_OF(number) #number
#define LAST_LABEL_TEXT(number) LAST_LABEL_TEXT_OF(number)
#define DT_LAST_LABEL_TEXT LAST_LABEL_TEXT(DT_LAST_LABEL)

/* -- Fields ------------------------------------------------------------------------ */

#define STR_OF(name, max_bytes, meaning, example)                                                  \
    {#name, &atom_string, max_bytes, NULL, meaning, example, 0},
#define STR(name, meaning, example) STR_OF(name, 0, meaning, example)
#define TEXT(name, meaning, example) STR_OF(name, DT_TERM_MAX, meaning, example)
#define STRING(name, meaning, example) STR_OF(name, DT_STRING_MAX, meaning, example)
#define NUMBER(type, name, unit, meaning, example)                                                 \
    {#name, &atom_##type, 0, unit, meaning, NULL, example},
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    static const struct dt_field name##_fields[] = {fields{NULL, NULL, 0, NULL, NULL, NULL, 0}};
#include "catalogue/probes.def"

/* -- Probes ------------------------------------------------------------------------ */

#define ON(backend) | 1U << DT_BACKEND_##backend
#define INFO(name, provider, backends, is_labeled, is_row, when, differs)                          \
    {#name, &atom_##provider, 0 backends, is_labeled, is_row, when, differs, name##_fields},
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    INFO(name, provider, backends, false, false, when, differs)
#define LABELED_PROBE(name, provider, backends, when, differs, fields...)                          \
    INFO(name, provider, backends, true, false, when, differs)
#define ROW(name, provider, backends, when, differs, fields...)                                    \
    INFO(name, provider, backends, false, true, when, differs)
const struct dt_probe_info dt_probes[DT_PROBES] = {
#include "catalogue/probes.def"
};

#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define SECOND_OF(first, second, ...) second

#define ON(backend)
#define FROM(source) , #source
#define PROBE(name, provider, backends, ...) SECOND(~backends, NULL, ~),
const char *const dt_probe_sources[DT_PROBES] = {
#include "catalogue/probes.def"
};

#define ON(backend)
#define AS(kind) , &atom_##kind
#define PROBE(name, provider, backends, ...) SECOND(~backends, &atom_reported, ~),
const ERL_NIF_TERM *const dt_probe_kinds[DT_PROBES] = {
#include "catalogue/probes.def"
};

/* -- Event groups ------------------------------------------------------------------- */

const char *const dt_event_group_names[DT_EVENT_GROUPS] = {
#define EVENT_GROUP(name) #name,
#include "catalogue/probes.def"
};

#define ON(backend)
#define IN(group) | 1U << DT_IN_##group
#define PROBE(name, provider, backends, ...) 0 backends,
const unsigned dt_probe_event_groups[DT_PROBES] = {
#include "catalogue/probes.def"
};

#define ON(backend) | 1U << DT_BACKEND_##backend
#define IN(group) | 1U << DT_BACKENDS
#define PROBE(name, provider, backends, ...)                                                       \
    _Static_assert(                                                                                \
        !((0 backends) & 1U << DT_BACKEND_lttng) == !((0 backends) & 1U << DT_BACKENDS),           \
        #name ": IN(group) belongs to ON(lttng), because LTTng records events by group");
#include "catalogue/probes.def"

/* -- Bounds ------------------------------------------------------------------------- */

/*
 * bpftrace reads only arg0 to arg5. The probes of other providers have the arguments of the VMs
 * that were built with them.
 */
enum {
#define PROVIDER(name) PROVIDER_##name,
#include "catalogue/probes.def"
};

#define ON(backend) | 1U << DT_BACKEND_##backend
#define FIELD(name) +1
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    _Static_assert(0 fields <= 6 || PROVIDER_##provider != PROVIDER_org_erlang_dyntrace ||         \
                       !((0 backends) & 1U << DT_BACKEND_usdt),                                    \
                   #name " has more fields than bpftrace can read");
#include "catalogue/probes.def"
