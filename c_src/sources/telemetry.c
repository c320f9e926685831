/* The metadata may be as large as a Plug.Conn with all its assigns. So only some keys are looked
   up: the time of a look-up hardly depends on the size of the map. */
#include "sources/telemetry.h"

#include "catalogue/atoms.h"
#include "sources/parts.h"
#include "text/string.h"
#include "text/term.h"

#define NS_PER_S INT64_C(1000000000)

/* -- The keys of the metadata ----------------------------------------------------------------- */

enum {
#define KEY(name) +1
    KEYS = 0
#include "catalogue/telemetry_keys.def"
};

/* The holder is 0 for a key of the metadata itself. */
static struct { ERL_NIF_TERM holder, name; } keys[KEYS];

/* Units of durations per second. */
static int64_t units = NS_PER_S;

/* Atoms are constant, so an upgrade stores the same ones again. */
bool dt_telemetry_start(ErlNifEnv *env, ERL_NIF_TERM units_per_second) {
    unsigned i = 0;
    ErlNifSInt64 number;

    if (!enif_get_int64(env, units_per_second, &number) || number <= 0)
        return false;
    units = number;
#define KEY(of) keys[i++].name = enif_make_atom(env, #of);
#define KEY_IN(in, of)                                                                             \
    keys[i].holder = enif_make_atom(env, #in);                                                     \
    keys[i++].name = enif_make_atom(env, #of);
#include "catalogue/telemetry_keys.def"
    return true;
}

static bool get_key(ErlNifEnv *env, ERL_NIF_TERM metadata, unsigned key, ERL_NIF_TERM *value) {
    ERL_NIF_TERM map = metadata;

    return (!keys[key].holder || enif_get_map_value(env, metadata, keys[key].holder, &map)) &&
           enif_get_map_value(env, map, keys[key].name, value);
}

/* The keys that the metadata has, as a map. */
static const char *metadata_text(struct dt_traced *trace, ERL_NIF_TERM metadata) {
    ERL_NIF_TERM names[KEYS], values[KEYS];
    unsigned count = 0;

    for (unsigned i = 0; i < KEYS; i++)
        if (get_key(trace->env, metadata, i, &values[count]))
            names[count++] = keys[i].name;
    return dt_text_map(trace->text, trace->env, names, values, count);
}

/* -- The decoder ------------------------------------------------------------------------------ */

static bool get_duration(ErlNifEnv *env, ERL_NIF_TERM measurements, ERL_NIF_TERM key,
                         int64_t *duration) {
    ERL_NIF_TERM value;
    ErlNifSInt64 number;

    if (!enif_get_map_value(env, measurements, key, &value) ||
        !enif_get_int64(env, value, &number) || number < 0 ||
        number / units >= INT64_MAX / NS_PER_S)
        return false;
    /* The remainder is smaller than `units`. */
    *duration = units == NS_PER_S ? number
                                  : number / units * NS_PER_S +
                                        (int64_t)((double)(number % units) / (double)units * 1e9);
    return true;
}

/* Ecto has a total_time instead of a duration. */
static int64_t duration_of(ErlNifEnv *env, ERL_NIF_TERM measurements) {
    int64_t duration;

    return get_duration(env, measurements, atom_duration, &duration) ||
                   get_duration(env, measurements, atom_total_time, &duration)
               ? duration
               : -1;
}

/* Whether it is execute(Name, Measurements, Metadata). For other arguments the function fails, or
   calls itself with such ones. */
static bool get_arguments(const struct dt_traced *trace, ERL_NIF_TERM args[3]) {
    struct dt_location call;
    ERL_NIF_TERM rest;

    if (!dt_get_location(trace, trace->term, &call) || call.function != atom_execute ||
        call.arity != 3)
        return false;
    rest = call.arguments;
    for (int i = 0; i < 3; i++)
        if (!enif_get_list_cell(trace->env, rest, &args[i], &rest))
            return false;
    return enif_is_list(trace->env, args[0]) && !enif_is_empty_list(trace->env, args[0]) &&
           enif_is_map(trace->env, args[1]) && enif_is_map(trace->env, args[2]);
}

enum dt_decoded dt_decode_telemetry(struct dt_traced *trace, union dt_event *event) {
    struct dt_telemetry_event *e = &event->telemetry_event;
    ERL_NIF_TERM args[3];

    if (!get_arguments(trace, args))
        return DT_NO_EVENT;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->name, dt_text_dotted(trace->text, trace->env, args[0]));
    e->duration = duration_of(trace->env, args[1]);
    DT_TRY(e->measurements, dt_term(trace, args[1]));
    DT_TRY(e->metadata, metadata_text(trace, args[2]));
    return DT_DECODED;
}
