/*
 * The NIF library: loading, the callbacks of the erl_tracer contract, and the calls of
 * the facade.
 *
 * The callbacks run inside the traced process or port, on its scheduler. They store no state
 * between calls, raise nothing, and accept any arguments, since Erlang code may call them too.
 */
#include <stdatomic.h>

#include <string.h>

#include "dt_atoms.h"
#include "dt_backends.h"
#include "dt_decode.h"
#include "dt_describe.h"
#include "dt_follower.h"
#include "dt_size.h"
#include "dt_user.h"

/* Events that could not be decoded, per probe; the last element: events of an unknown tag. */
static _Atomic uint64_t undecoded[DT_PROBES + 1];

static void count_undecoded(enum dt_probe probe) {
    atomic_fetch_add_explicit(&undecoded[probe], 1, memory_order_relaxed);
}

/* -- Dispatch ------------------------------------------------------------------- */

static bool is_follower(ERL_NIF_TERM state) {
    return state == atom_dyntrace_autotracer;
}

static bool may_fire(const struct dt_route *route, ERL_NIF_TERM state) {
    return dt_listening(route->probe) && (!is_follower(state) || dt_follower_allows(route->probe));
}

static bool is_wanted(const struct dt_tag *t, ERL_NIF_TERM state) {
    for (unsigned i = 0; i < t->count; i++)
        if (may_fire(t->routes[i], state))
            return true;
    return false;
}

/* The budget is asked last: an event without an enabled probe does not count as skipped. */
static ERL_NIF_TERM answer(bool wanted, ERL_NIF_TERM state) {
    return wanted && (!is_follower(state) || dt_follower_may()) ? atom_trace : atom_discard;
}

static ERL_NIF_TERM enabled_in(enum dt_group group, ERL_NIF_TERM tag, ERL_NIF_TERM state) {
    return answer(is_wanted(dt_tag_of(group, tag), state), state);
}

/* Decodes the event for one probe, and fires it. */
static void trace_for(const struct dt_route *route, struct dt_traced *trace) {
    union dt_event event;

    dt_text_open(trace->text);
    trace->route = route;
    switch (route->decode(trace, &event)) {
    case DT_DECODED:
        dt_fire(route->probe, &event);
        break;
    case DT_UNDECODED:
        count_undecoded(route->probe);
        break;
    case DT_NO_EVENT:
        break;
    }
}

static ERL_NIF_TERM trace_in(enum dt_group group, ERL_NIF_TERM tag, struct dt_traced trace) {
    const struct dt_tag *t = dt_tag_of(group, tag);
    struct dt_text text;

    if (is_follower(trace.state) && !dt_follower_take())
        return atom_ok;
    trace.text = &text;
    for (unsigned i = 0; i < t->count; i++)
        if (t->routes[i]->decode && may_fire(t->routes[i], trace.state))
            trace_for(t->routes[i], &trace);
    if (t->tag == DT_NO_TAG)
        count_undecoded(DT_PROBES);
    return atom_ok;
}

/* -- A pair of callbacks per group ----------------------------------------------- */

static struct dt_traced traced(ErlNifEnv *env, const ERL_NIF_TERM argv[]) {
    return (struct dt_traced){.env = env,
                              .tag = argv[0],
                              .state = argv[1],
                              .tracee = argv[2],
                              .term = argv[3],
                              .opts = argv[4]};
}

#define INFO_GROUP(group)
#define GROUP(group)                                                                               \
    static ERL_NIF_TERM enabled_##group(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {     \
        (void)env;                                                                                 \
        (void)argc;                                                                                \
        return enabled_in(DT_GROUP_##group, argv[0], argv[1]);                                     \
    }                                                                                              \
    static ERL_NIF_TERM trace_##group(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {       \
        (void)argc;                                                                                \
        return trace_in(DT_GROUP_##group, argv[0], traced(env, argv));                             \
    }
#include "dt_routes.def"

/* -- The callbacks for any tag ---------------------------------------------------- */

/*
 * The VM calls enabled/3 and trace/5 for trace_status and seq_trace alone; for all other tags there
 * is a pair of callbacks. The contract of erl_tracer allows any tag.
 */
static bool group_takes(enum dt_group group, bool is_port) {
    switch (group) {
    case DT_GROUP_procs:
    case DT_GROUP_running_procs:
        return !is_port;
    case DT_GROUP_ports:
    case DT_GROUP_running_ports:
        return is_port;
    case DT_GROUP_seq_trace:
        return false;
    default:
        return true;
    }
}

/* For a tag that no group has, the first group, where it is unknown too. */
static enum dt_group group_of(ErlNifEnv *env, ERL_NIF_TERM tag, ERL_NIF_TERM tracee) {
    bool is_port = enif_is_port(env, tracee);

    for (int group = 0; group < DT_GROUPS; group++)
        if (group_takes(group, is_port) && dt_tag_of(group, tag)->tag != DT_NO_TAG)
            return group;
    return 0;
}

/* {send | 'receive' | print, …} */
static ERL_NIF_TERM seq_trace_kind(ErlNifEnv *env, ERL_NIF_TERM info) {
    const ERL_NIF_TERM *el;
    int size;

    return enif_get_tuple(env, info, &size, &el) && size > 0 ? el[0] : atom_undefined;
}

/* A tracer that a user has set by hand stays, since a consumer may attach later. */
static ERL_NIF_TERM trace_status(ErlNifEnv *env, ERL_NIF_TERM state) {
    return !is_follower(state) || dt_follower_is_alive(env) ? atom_trace : atom_remove;
}

static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    bool wanted = false;

    (void)argc;
    if (argv[0] == atom_trace_status)
        return trace_status(env, argv[1]);
    if (argv[0] != atom_seq_trace)
        return enabled_in(group_of(env, argv[0], argv[2]), argv[0], argv[1]);
    /* Which of the group's tags it is, only trace/5 is told. */
    for (const struct dt_tag *t = dt_tags[DT_GROUP_seq_trace]; t->tag != DT_NO_TAG && !wanted; t++)
        wanted = is_wanted(t, argv[1]);
    return answer(wanted, argv[1]);
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    struct dt_traced trace = traced(env, argv);

    (void)argc;
    if (argv[0] == atom_seq_trace)
        return trace_in(DT_GROUP_seq_trace, seq_trace_kind(env, argv[3]), trace);
    return trace_in(group_of(env, argv[0], argv[2]), argv[0], trace);
}

/* -- The calls of the facade ------------------------------------------------------- */

static ERL_NIF_TERM probes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return dt_describe_probes(env);
}

static ERL_NIF_TERM listeners(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return dt_describe_listeners(env);
}

/* #{backends, undecoded, lttng_library} */
static ERL_NIF_TERM nif_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    static const char *const names[DT_PROBES + 1] = {
#define PROBE(name, when, fields...) #name,
#include "dt_probes.def"
        "unknown"};
    ERL_NIF_TERM counts = enif_make_new_map(env), info = enif_make_new_map(env);

    (void)argc;
    (void)argv;
    for (int i = 0; i <= DT_PROBES; i++) {
        uint64_t n = atomic_load_explicit(&undecoded[i], memory_order_relaxed);

        if (n > 0)
            enif_make_map_put(env, counts, enif_make_atom(env, names[i]), enif_make_uint64(env, n),
                              &counts);
    }
    enif_make_map_put(env, info, atom_undecoded, counts, &info);
    enif_make_map_put(env, info, atom_backends, dt_describe_backends(env), &info);
    enif_make_map_put(env, info, atom_lttng_library, dt_describe_lttng_library(env), &info);
    return info;
}

static bool get_text(ERL_NIF_TERM text, bool *shapes) {
    *shapes = enif_is_identical(text, atom_shape);
    return *shapes || enif_is_identical(text, atom_full);
}

/* full | shape */
static ERL_NIF_TERM show(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    bool shapes;

    (void)argc;
    if (!get_text(argv[0], &shapes))
        return enif_make_badarg(env);
    dt_text_show_shapes(shapes);
    return atom_ok;
}

/* Events | infinity */
static ERL_NIF_TERM set_budget(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    ErlNifSInt64 events = DT_BUDGET_INFINITE;

    (void)argc;
    if (!enif_is_identical(argv[0], atom_infinity) &&
        (!enif_get_int64(env, argv[0], &events) || events < 0))
        return enif_make_badarg(env);
    dt_follower_budget(events);
    return atom_ok;
}

static ERL_NIF_TERM skipped(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return enif_make_uint64(env, dt_follower_skipped());
}

static ERL_NIF_TERM claim(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return dt_follower_claim(env);
}

/* true | false */
static ERL_NIF_TERM set_active(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)env;
    (void)argc;
    dt_follower_activate(enif_is_identical(argv[0], atom_true));
    return atom_ok;
}

/* all | [Name] */
static ERL_NIF_TERM allow(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    static const char *const names[DT_PROBES] = {
#define PROBE(name, when, fields...) #name,
#include "dt_probes.def"
    };

    (void)argc;
    for (int i = 0; i < DT_PROBES; i++) {
        ERL_NIF_TERM list = argv[0], head, name = enif_make_atom(env, names[i]);
        bool allowed = enif_is_atom(env, list);

        while (!allowed && enif_get_list_cell(env, list, &head, &list))
            allowed = enif_is_identical(head, name);
        dt_follower_allow(i, allowed);
    }
    return atom_ok;
}

/* -- Loading --------------------------------------------------------------------- */

static ErlNifFunc functions[] = {{"enabled", 3, enabled, 0},       {"trace", 5, trace, 0},
#define INFO_GROUP(group)
#define GROUP(group)                                                                               \
    {"enabled_" #group, 3, enabled_##group, 0}, {"trace_" #group, 5, trace_##group, 0},
#include "dt_routes.def"
                                 {"probes", 0, probes, 0},         {"listeners", 0, listeners, 0},
                                 {"nif_info", 0, nif_info, 0},     {"show_nif", 1, show, 0},
                                 {"allow", 1, allow, 0},           {"set_budget", 1, set_budget, 0},
                                 {"skipped", 0, skipped, 0},       {"claim", 0, claim, 0},
                                 {"set_active", 1, set_active, 0}, DT_USER_FUNCTIONS};

/* {ReservedWords, Sizes, LeastInteger, GreatestInteger, full | shape,
   PathOfTheLttngProvider :: binary()} */
static int start(ErlNifEnv *env, ERL_NIF_TERM load_info, bool may_wait) {
    char path[4096];
    const ERL_NIF_TERM *el;
    ErlNifBinary binary;
    int size;
    bool shapes;

    dt_atoms_make(env);
    dt_tags_fill();
    if (!enif_get_tuple(env, load_info, &size, &el) || size != 6 || !dt_text_reserve(env, el[0]) ||
        !dt_size_calibrate(env, el[1]) || !dt_text_calibrate(env, el[2], el[3]) ||
        !get_text(el[4], &shapes) || !enif_inspect_binary(env, el[5], &binary) ||
        binary.size >= sizeof path)
        return 1;
    dt_text_show_shapes(shapes);
    memcpy(path, binary.data, binary.size);
    path[binary.size] = '\0';
    dt_lttng_load(path, may_wait);
    return 0;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info) {
    (void)priv_data;
    return start(env, load_info, true);
}

/* An upgrade is a load: the library has no state that a new load could lose. Callbacks of the
   module's old version may still be running, in this library or in the one that it replaces. That
   may be OTP's, so its private data is not touched. All schedulers are stopped meanwhile: nothing
   here waits. */
static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info) {
    (void)priv_data;
    (void)old_priv_data;
    return start(env, load_info, false);
}

ERL_NIF_INIT(dyntrace, functions, load, NULL, upgrade, NULL)
