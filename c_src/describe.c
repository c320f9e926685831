#include "dt_describe.h"

#include <stdio.h>
#include <string.h>

#include "dt_atoms.h"
#include "dt_backends.h"
#include "dt_decode.h"

/* -- The catalogue as data ------------------------------------------------------ */

struct field {
    const char *name;
    const ERL_NIF_TERM *type;
    unsigned max_bytes; /* 0: never cut */
    const char *unit;   /* NULL: a text */
    const char *meaning;
    const char *text_example;
    int64_t number_example;
};

#define STR(name, meaning, example) {#name, &atom_string, 0, NULL, meaning, example, 0},
#define TEXT(name, meaning, example) {#name, &atom_string, DT_TERM_MAX, NULL, meaning, example, 0},
#define STRING(name, meaning, example)                                                             \
    {#name, &atom_string, DT_STRING_MAX, NULL, meaning, example, 0},
#define INT(name, unit, meaning, example) {#name, &atom_int32, 0, unit, meaning, NULL, example},
#define LONG(name, unit, meaning, example) {#name, &atom_int64, 0, unit, meaning, NULL, example},
#define UINT(name, unit, meaning, example) {#name, &atom_uint32, 0, unit, meaning, NULL, example},
#define ULONG(name, unit, meaning, example) {#name, &atom_uint64, 0, unit, meaning, NULL, example},
#define PROBE(name, when, fields...)                                                               \
    static const struct field name##_fields[] = {fields{NULL, NULL, 0, NULL, NULL, NULL, 0}};
#include "dt_probes.def"

enum { USDT = 1, LTTNG = 2, LABELED = 4 };

static const struct {
    const char *name;
    const ERL_NIF_TERM *provider;
    unsigned kind;
    const char *when;
    const char *differs; /* empty: it does not */
    const struct field *fields;
} probes[DT_PROBES] = {
#define PROBE(name, when, fields...)                                                               \
    {#name, &atom_org_erlang_dyntrace, USDT | LTTNG, when, "", name##_fields},
#define LTTNG_PROBE(name, when, fields...)                                                         \
    {#name, &atom_org_erlang_dyntrace, LTTNG, when, "", name##_fields},
#define ERLANG_PROBE(name, when, differs, fields...)                                               \
    {#name, &atom_erlang, USDT, when, differs, name##_fields},
#define LABELED_PROBE(name, when, differs, fields...)                                              \
    {#name, &atom_erlang, USDT | LABELED, when, differs, name##_fields},
#include "dt_probes.def"
};

/* The backends as they are described; dt_backends.h has the functions that fire. */
static const struct {
    const ERL_NIF_TERM *name;
    unsigned kind;
    bool (*missing)(char *why, size_t size);
    bool (*listening)(enum dt_probe probe);
} backends[] = {
    {&atom_usdt, USDT, dt_usdt_missing, dt_usdt_listening},
    {&atom_lttng, LTTNG, dt_lttng_missing, dt_lttng_listening},
};

enum { BACKENDS = sizeof backends / sizeof *backends };

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

static ERL_NIF_TERM describe_field(ErlNifEnv *env, const struct field *field) {
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

static ERL_NIF_TERM describe_fields(ErlNifEnv *env, const struct field *field) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (; field->name; field++)
        list = enif_make_list_cell(env, describe_field(env, field), list);
    return reversed(env, list);
}

/* The trace events that feed a probe. */
static ERL_NIF_TERM describe_events(ErlNifEnv *env, enum dt_probe probe) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int group = 0; group < DT_GROUPS; group++)
        for (const struct dt_route *r = dt_routes[group]; r->tag; r++) {
            ERL_NIF_TERM map = enif_make_new_map(env);

            if (r->probe != probe || !r->decode)
                continue;
            put(env, &map, atom_group, enif_make_atom(env, dt_group_names[group]));
            put(env, &map, atom_tag, *r->tag);
            put(env, &map, atom_flags, binary(env, r->flags));
            list = enif_make_list_cell(env, map, list);
        }
    return reversed(env, list);
}

static ERL_NIF_TERM identify(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM name) {
    ERL_NIF_TERM map = enif_make_new_map(env);

    put(env, &map, atom_provider, *probes[probe].provider);
    put(env, &map, atom_name, name);
    return map;
}

static ERL_NIF_TERM probe_name(ErlNifEnv *env, enum dt_probe probe) {
    return enif_make_atom(env, probes[probe].name);
}

/* The backends that the probe has or, with `listening`, those in which it is enabled. */
static ERL_NIF_TERM backends_of(ErlNifEnv *env, enum dt_probe probe, bool listening) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int i = BACKENDS; i-- > 0;)
        if ((probes[probe].kind & backends[i].kind) && (!listening || backends[i].listening(probe)))
            list = enif_make_list_cell(env, *backends[i].name, list);
    return list;
}

/* -- The terms ------------------------------------------------------------------- */

ERL_NIF_TERM dt_describe_probes(ErlNifEnv *env) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int probe = DT_PROBES; probe-- > 0;) {
        ERL_NIF_TERM map = identify(env, probe, probe_name(env, probe));

        put(env, &map, atom_doc, binary(env, probes[probe].when));
        put(env, &map, atom_backends, backends_of(env, probe, false));
        put(env, &map, atom_fields, describe_fields(env, probes[probe].fields));
        put(env, &map, atom_events, describe_events(env, probe));
        if (*probes[probe].differs)
            put(env, &map, atom_differs, binary(env, probes[probe].differs));
        if (probes[probe].kind & LABELED)
            put(env, &map, atom_labels, enif_make_uint(env, DT_LABELS));
        list = enif_make_list_cell(env, map, list);
    }
    return list;
}

static ERL_NIF_TERM add_listener(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM name,
                                 ERL_NIF_TERM names, ERL_NIF_TERM list) {
    ERL_NIF_TERM map = identify(env, probe, name);

    put(env, &map, atom_backends, names);
    return enif_make_list_cell(env, map, list);
}

/* A labeled probe is described by its name and label. */
static ERL_NIF_TERM add_labels(ErlNifEnv *env, enum dt_probe probe, ERL_NIF_TERM list) {
    char name[64];

    for (unsigned label = DT_LABELS; label-- > 0;)
        if (dt_usdt_label_listening(label)) {
            (void)snprintf(name, sizeof name, "%s%u", probes[probe].name, label);
            list = add_listener(env, probe, enif_make_atom(env, name),
                                enif_make_list1(env, atom_usdt), list);
        }
    return list;
}

ERL_NIF_TERM dt_describe_listeners(ErlNifEnv *env) {
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (int probe = DT_PROBES; probe-- > 0;) {
        ERL_NIF_TERM names = backends_of(env, probe, true);

        if (probes[probe].kind & LABELED)
            list = add_labels(env, probe, list);
        else if (!enif_is_empty_list(env, names))
            list = add_listener(env, probe, probe_name(env, probe), names, list);
    }
    return list;
}

ERL_NIF_TERM dt_describe_backends(ErlNifEnv *env) {
    ERL_NIF_TERM map = enif_make_new_map(env);
    char why[512];

    for (int i = 0; i < BACKENDS; i++) {
        bool missing = backends[i].missing(why, sizeof why);

        put(env, &map, *backends[i].name,
            missing ? enif_make_tuple2(env, atom_missing, binary(env, why)) : atom_available);
    }
    return map;
}

ERL_NIF_TERM dt_describe_lttng_library(ErlNifEnv *env) {
    const char *path = dt_lttng_library();

    return path ? binary(env, path) : atom_undefined;
}
