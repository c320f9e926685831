/*
 * The NIF library: loading, upgrading, the table of NIFs, and the functions for the facade.
 */
#include <assert.h>
#include <string.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "catalogue/probes.h"
#include "describe.h"
#include "resources.h"
#include "sources/annotations.h"
#include "sources/calls.h"
#include "sources/compat/compat.h"
#include "sources/gate.h"
#include "sources/implied_calls.h"
#include "sources/reports.h"
#include "sources/routes.h"
#include "sources/telemetry.h"
#include "sources/tracer.h"
#include "status.h"
#include "text/id.h"
#include "text/term.h"

/* -- The functions for the facade -------------------------------------------------- */

static DT_NIF(probes) {
    return dt_describe_probes(env);
}

static DT_NIF(listeners) {
    return dt_describe_listeners(env);
}

/* [Name] */
static DT_NIF(consumers) {
    return dt_describe_consumers(env, argv[0]);
}

/* #{backends, undecoded, lttng_library, lttng_providers} */
static DT_NIF(nif_info) {
    ERL_NIF_TERM info = enif_make_new_map(env);

    enif_make_map_put(env, info, atom_undecoded, dt_describe_undecoded(env), &info);
    enif_make_map_put(env, info, atom_backends, dt_describe_backends(env), &info);
    enif_make_map_put(env, info, atom_lttng_library, dt_describe_lttng_library(env), &info);
    enif_make_map_put(env, info, atom_lttng_providers, dt_describe_lttng_providers(env), &info);
    return info;
}

static bool get_text_mode(ERL_NIF_TERM mode, bool *shapes) {
    *shapes = enif_is_identical(mode, atom_shape);
    return *shapes || enif_is_identical(mode, atom_full);
}

/* full | shape */
static DT_NIF(show) {
    bool shapes;

    if (!get_text_mode(argv[0], &shapes))
        return enif_make_badarg(env);
    dt_term_show_shapes(shapes);
    return atom_ok;
}

/* Events | infinity */
static DT_NIF(set_budget) {
    ErlNifSInt64 events = DT_BUDGET_INFINITE;

    if (!enif_is_identical(argv[0], atom_infinity) &&
        (!enif_get_int64(env, argv[0], &events) || events < 0))
        return enif_make_badarg(env);
    dt_gate_set_budget(events);
    return atom_ok;
}

static DT_NIF(budget_left) {
    return enif_make_int64(env, dt_gate_left());
}

static DT_NIF(skipped) {
    return enif_make_uint64(env, dt_gate_skipped());
}

static DT_NIF(claim) {
    return dt_gate_claim(env);
}

/* true | false */
static DT_NIF(set_active) {
    dt_gate_activate(enif_is_identical(argv[0], atom_true));
    return atom_ok;
}

static bool is_in(ErlNifEnv *env, const char *name, ERL_NIF_TERM list) {
    ERL_NIF_TERM head, atom = enif_make_atom(env, name);

    while (enif_get_list_cell(env, list, &head, &list))
        if (enif_is_identical(head, atom))
            return true;
    return false;
}

/* [Group] */
static DT_NIF(hold) {
    uint64_t groups = 0;

    static_assert(DT_GROUPS <= 64, "a bit for each group");
    for (int group = 0; group < DT_GROUPS; group++)
        groups |= (uint64_t)is_in(env, dt_group_names[group], argv[0]) << group;
    dt_gate_hold(groups);
    return atom_ok;
}

/* all | [Name] */
static DT_NIF(allow) {
    bool all = enif_is_atom(env, argv[0]);

    for (int i = 0; i < DT_PROBES; i++)
        dt_gate_allow(i, all || is_in(env, dt_probes[i].name, argv[0]));
    return atom_ok;
}

/* -- Loading --------------------------------------------------------------------- */

static ErlNifFunc functions[] = {
    /* the tracer */
    {"enabled", 3, dt_tracer_enabled, 0},
    {"trace", 5, dt_tracer_trace, 0},
#define INFO_GROUP(group)
#define MODULE_GROUP(group, module)
#define PORT_GROUP(group, callbacks)
#define GROUP(group)                                                                               \
    {"enabled_" #group, 3, dt_tracer_enabled_##group, 0},                                          \
        {"trace_" #group, 5, dt_tracer_trace_##group, 0},
#include "sources/routes.def"

    /* annotations */
    {"wants_i4s4", 0, dt_annotation_wants_i4s4, 0},
    {"wants_n", 1, dt_annotation_wants_n, 0},
    {"wants_mark", 0, dt_annotation_wants_mark, 0},
    {"wants_span", 0, dt_annotation_wants_span, 0},
    {"user_trace_s1", 1, dt_annotation_trace_s1, 0},
    {"user_trace_i4s4", 9, dt_annotation_trace_i4s4, 0},
    {"user_trace_n_nif", 10, dt_annotation_trace_n, 0},
    {"user_mark", 3, dt_annotation_mark, 0},
    {"user_span_start", 2, dt_annotation_span_start, 0},
    {"user_span_stop", 4, dt_annotation_span_stop, 0},

    /* the facade */
    {"probes", 0, probes, 0},
    {"listeners", 0, listeners, 0},
    {"consumers", 1, consumers, 0},
    {"nif_info", 0, nif_info, 0},
    {"show_nif", 1, show, 0},
    {"allow", 1, allow, 0},
    {"set_budget", 1, set_budget, 0},
    {"budget_left", 0, budget_left, 0},
    {"skipped", 0, skipped, 0},
    {"claim", 0, claim, 0},
    {"set_active", 1, set_active, 0},
    {"hold", 1, hold, 0},
    {"set_call_budget", 1, dt_calls_set_budget, 0},
    {"take_calls", 0, dt_calls_take, 0},
    {"set_implied_functions", 1, dt_implied_calls_set, 0},
    {"report", 2, dt_report, 0},
    {"set_status", 1, dt_status_set, 0},
    {"open_files", 0, dt_resources_open_files, 0},
    {"kernel_file", 1, dt_resources_kernel_file, 0},

    DT_COMPAT_NIFS,
};

/* {ReservedWords, Sizes, LeastInteger, GreatestInteger, full | shape,
   {Bifs, Nifs}, FolderOfTheLttngProviders :: binary(), NativeTimeUnitsPerSecond} */
static int start(ErlNifEnv *env, ERL_NIF_TERM load_info, bool may_wait) {
    char path[4096];
    const ERL_NIF_TERM *el;
    ErlNifBinary binary;
    int size;
    bool shapes;

    dt_atoms_make(env);
    dt_tags_fill(env);
    if (!enif_get_tuple(env, load_info, &size, &el) || size != 8 || !dt_id_reserve(env, el[0]) ||
        !dt_term_calibrate(env, el[2], el[3]) || !get_text_mode(el[4], &shapes) ||
        !dt_compat_start(env, el[1], el[5]) || !enif_inspect_binary(env, el[6], &binary) ||
        binary.size >= sizeof path || !dt_telemetry_start(env, el[7]))
        return 1;
    dt_term_show_shapes(shapes);
    memcpy(path, binary.data, binary.size);
    path[binary.size] = '\0';
    dt_lttng_load(path, may_wait);
    return 0;
}

static int load(ErlNifEnv *env, DT_UNUSED void **priv_data, ERL_NIF_TERM load_info) {
    return start(env, load_info, true);
}

/* An upgrade is a load: the library has no state that a new load could lose. Callbacks of the
   module's old version may still be running, in this library or in the one that it replaces. That
   may be OTP's, so its private data is not accessed. All schedulers are stopped meanwhile, so this
   must not wait. */
static int upgrade(ErlNifEnv *env, DT_UNUSED void **priv_data, DT_UNUSED void **old_priv_data,
                   ERL_NIF_TERM load_info) {
    return start(env, load_info, false);
}

ERL_NIF_INIT(dyntrace, functions, load, NULL, upgrade, NULL)
