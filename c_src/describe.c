#include "describe.h"

#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "catalogue/probes.h"
#include "sources/routes.h"
#include "sources/tracer.h"

/* -- The backends -------------------------------------------------------------- */

static const struct {
    const ERL_NIF_TERM *name;
    bool (*missing)(char *why, size_t size);
    bool (*is_enabled)(enum dt_probe probe);
    size_t (*consumers_of)(enum dt_probe probe, uint64_t *ids, size_t most);
} backends[DT_BACKENDS] = {
#define BACKEND(name)                                                                              \
    {&atom_##name, dt_##name##_missing, dt_##name##_is_enabled, dt_##name##_consumers_of},
#include "catalogue/probes.def"
};

/* -- Making terms --------------------------------------------------------------- */

static ERL_NIF_TERM binary(ErlNifEnv *env, const char *s) {
    ERL_NIF_TERM term;
    size_t size = strlen(s);

    memcpy(enif_make_new_binary(env, size, &term), s, size);
    return term;
}

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, ERL_NIF_TERM key, ERL_NIF_TERM value) {
    enif_make_map_put(env, *map, key, value, map);
}

static ERL_NIF_TERM reversed(ErlNifEnv *env, ERL_NIF_TERM list) {
    enif_make_reverse_list(env, list, &list);
    return list;
}

static ERL_NIF_TERM describe_field(ErlNifEnv *env, const struct dt_field *field) {
    ERL_NIF_TERM map = enif_make_new_map(env);

    put(env, &map, atom_name, enif_make_atom(env, field->name));
    put(env, &map, atom_type, *field->type);
    put(env, &map, atom_doc, binary(env, field->meaning));
    if (field->max_bytes)
        put(env, &map, atom_max_bytes, enif_make_uint(env, field->max_bytes));
    if (field->unit)
        put(env, &map, atom_unit, binary(env, field->unit));
    put(env, &map, atom_example,
        field->text_example ? binary(env, field->text_example)
                            : enif_make_int64(env, field->number_example));
    return map;
}

static ERL_NIF_TERM describe_fields(ErlNifEnv *env, const struct dt_field *field) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (; field->name; field++)
        list = enif_make_list_cell(env, describe_field(env, field), list);
    return reversed(env, list);
}

static ERL_NIF_TERM describe_event_groups(ErlNifEnv *env, enum dt_probe probe) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int group = DT_EVENT_GROUPS; group-- > 0;)
        if (dt_probe_event_groups[probe] & 1U << group)
            list = enif_make_list_cell(env, enif_make_atom(env, dt_event_group_names[group]), list);
    return list;
}

/* The trace events that feed a probe or, with `asked`, the further events that it requires. */
static ERL_NIF_TERM describe_events(ErlNifEnv *env, enum dt_probe probe, bool asked) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int group = 0; group < DT_GROUPS; group++)
        for (const struct dt_route *r = dt_routes[group]; r->tag; r++) {
            ERL_NIF_TERM map = enif_make_new_map(env);

            if (r->probe != probe || !r->decode != asked)
                continue;
            put(env, &map, atom_group, enif_make_atom(env, dt_group_names[group]));
            put(env, &map, atom_tag, enif_make_atom(env, r->tag));
            put(env, &map, atom_flags, binary(env, r->flags));
            list = enif_make_list_cell(env, map, list);
        }
    return reversed(env, list);
}

static ERL_NIF_TERM identify(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM name) {
    ERL_NIF_TERM map = enif_make_new_map(env);

    put(env, &map, atom_provider, *dt_probes[probe].provider);
    put(env, &map, atom_name, name);
    return map;
}

static ERL_NIF_TERM probe_name(ErlNifEnv *env, enum dt_probe probe) {
    return enif_make_atom(env, dt_probes[probe].name);
}

/* The backends of the probe or, with `enabled`, those in which it is enabled. */
static ERL_NIF_TERM backends_of(ErlNifEnv *env, enum dt_probe probe, bool enabled) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int i = 0; i < DT_BACKENDS; i++)
        if ((dt_probes[probe].backends & 1U << i) && (!enabled || backends[i].is_enabled(probe)))
            list = enif_make_list_cell(env, *backends[i].name, list);
    return list;
}

/* -- The terms ------------------------------------------------------------------- */

static ERL_NIF_TERM describe_probe(ErlNifEnv *env, enum dt_probe probe) {
    const struct dt_probe_info *info = &dt_probes[probe];
    ERL_NIF_TERM map = identify(env, probe, probe_name(env, probe));

    put(env, &map, atom_doc, binary(env, info->when));
    put(env, &map, atom_backends, backends_of(env, probe, false));
    put(env, &map, atom_event_groups, describe_event_groups(env, probe));
    put(env, &map, atom_kind, *dt_probe_kinds[probe]);
    put(env, &map, atom_fields, describe_fields(env, info->fields));
    put(env, &map, atom_events, describe_events(env, probe, false));
    put(env, &map, atom_asks, describe_events(env, probe, true));
    if (dt_probe_sources[probe])
        put(env, &map, atom_source, enif_make_atom(env, dt_probe_sources[probe]));
    if (*info->differs)
        put(env, &map, atom_differs, binary(env, info->differs));
    if (info->is_labeled)
        put(env, &map, atom_labels, enif_make_uint(env, DT_LABELS));
    if (info->is_row)
        put(env, &map, atom_row, enif_make_uint(env, DT_ROW));
    return map;
}

ERL_NIF_TERM dt_describe_probes(ErlNifEnv *env) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int probe = DT_PROBES; probe-- > 0;)
        list = enif_make_list_cell(env, describe_probe(env, probe), list);
    return list;
}

static ERL_NIF_TERM add_listener(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM name,
                                 ERL_NIF_TERM names, ERL_NIF_TERM list) {
    ERL_NIF_TERM map = identify(env, probe, name);

    put(env, &map, atom_backends, names);
    return enif_make_list_cell(env, map, list);
}

static ERL_NIF_TERM add_numbered(ErlNifEnv *env, enum dt_probe probe, unsigned number,
                                 ERL_NIF_TERM list) {
    char name[64];

    (void)snprintf(name, sizeof name, "%s%u", dt_probes[probe].name, number);
    return add_listener(env, probe, enif_make_atom(env, name), enif_make_list1(env, atom_usdt),
                        list);
}

/* The probes of a labeled probe are listed by name and label. */
static ERL_NIF_TERM add_labels(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM list) {
    for (unsigned label = DT_LABELS; label-- > 0;)
        if (dt_usdt_label_is_enabled(label))
            list = add_numbered(env, probe, label, list);
    return list;
}

/* The probes of an array are listed by name and index; the first one has no index in its name. */
static ERL_NIF_TERM add_row(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM list) {
    for (unsigned number = DT_LAST_OF_ROW; number > 0; number--)
        if (dt_usdt_row_is_enabled(number))
            list = add_numbered(env, probe, number, list);
    return dt_usdt_row_is_enabled(0) ? add_listener(env, probe, probe_name(env, probe),
                                                    enif_make_list1(env, atom_usdt), list)
                                     : list;
}

ERL_NIF_TERM dt_describe_listeners(ErlNifEnv *env) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int probe = DT_PROBES; probe-- > 0;) {
        ERL_NIF_TERM names = backends_of(env, probe, true);

        if (dt_probes[probe].is_labeled)
            list = add_labels(env, probe, list);
        else if (dt_probes[probe].is_row)
            list = add_row(env, probe, list);
        else if (!enif_is_empty_list(env, names))
            list = add_listener(env, probe, probe_name(env, probe), names, list);
    }
    return list;
}

static ERL_NIF_TERM add_consumers(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM name,
                                  ERL_NIF_TERM list) {
    uint64_t ids[DT_CONSUMERS];

    for (int i = DT_BACKENDS; i-- > 0;)
        for (size_t n = backends[i].consumers_of(probe, ids, DT_CONSUMERS); n-- > 0;) {
            ERL_NIF_TERM id = enif_make_uint64(env, ids[n]);

            list =
                enif_make_list_cell(env, enif_make_tuple3(env, name, *backends[i].name, id), list);
        }
    return list;
}

/* The application calls it several times per second, and each probe_name() is a lookup in the atom
   table. */
ERL_NIF_TERM dt_describe_consumers(ErlNifEnv *env, ERL_NIF_TERM names) {
    ERL_NIF_TERM list = enif_make_list(env, 0), name, of[DT_PROBES];

    for (int probe = 0; probe < DT_PROBES; probe++)
        of[probe] = probe_name(env, probe);
    while (enif_get_list_cell(env, names, &name, &names))
        for (int probe = 0; probe < DT_PROBES; probe++)
            if (enif_is_identical(name, of[probe]))
                list = add_consumers(env, probe, name, list);
    return list;
}

static ERL_NIF_TERM state(ErlNifEnv *env, bool missing, const char *why) {
    return missing ? enif_make_tuple2(env, atom_missing, binary(env, why)) : atom_available;
}

ERL_NIF_TERM dt_describe_backends(ErlNifEnv *env) {
    ERL_NIF_TERM map = enif_make_new_map(env);
    char why[512];

    for (int i = 0; i < DT_BACKENDS; i++) {
        bool missing = backends[i].missing(why, sizeof why);

        put(env, &map, *backends[i].name, state(env, missing, why));
    }
    return map;
}

ERL_NIF_TERM dt_describe_lttng_providers(ErlNifEnv *env) {
    ERL_NIF_TERM map = enif_make_new_map(env);
    char why[512];

    for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++) {
        bool missing = dt_lttng_provider_missing(i, why, sizeof why);

        put(env, &map, enif_make_atom(env, dt_lttng_provider_name(i)), state(env, missing, why));
    }
    return map;
}

ERL_NIF_TERM dt_describe_lttng_library(ErlNifEnv *env) {
    const char *path = dt_lttng_library();

    return path ? binary(env, path) : atom_undefined;
}

ERL_NIF_TERM dt_describe_undecoded(ErlNifEnv *env) {
    ERL_NIF_TERM map = enif_make_new_map(env);

    for (int probe = 0; probe <= DT_PROBES; probe++) {
        uint64_t n = dt_tracer_undecoded(probe);

        if (n > 0)
            put(env, &map, probe < DT_PROBES ? probe_name(env, probe) : atom_unknown,
                enif_make_uint64(env, n));
    }
    return map;
}
