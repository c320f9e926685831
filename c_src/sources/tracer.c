#include "sources/tracer.h"

#include <stdatomic.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "sources/calls.h"
#include "sources/gate.h"
#include "sources/implied_calls.h"
#include "sources/routes.h"

/* -- 1. The callbacks --------------------------------------------------------------- */

static enum dt_group of_tracee(enum dt_group group, ErlNifEnv *env, ERL_NIF_TERM tracee);
static ERL_NIF_TERM answer(enum dt_group group, ERL_NIF_TERM tag, ERL_NIF_TERM state);
static ERL_NIF_TERM trace(enum dt_group group, ERL_NIF_TERM tag, ErlNifEnv *env,
                          const ERL_NIF_TERM argv[]);

/* argv: Tag, State, Tracee; for trace_<group> also Term and Opts. */
#define INFO_GROUP(group)
#define MODULE_GROUP(group, module)
#define PORT_GROUP(group, callbacks)
#define GROUP(group)                                                                               \
    DT_NIF(dt_tracer_enabled_##group) {                                                            \
        return answer(of_tracee(DT_GROUP_##group, env, argv[2]), argv[0], argv[1]);                \
    }                                                                                              \
    DT_NIF(dt_tracer_trace_##group) {                                                              \
        return trace(of_tracee(DT_GROUP_##group, env, argv[2]), argv[0], env, argv);               \
    }
#include "sources/routes.def"

/* Processes and ports share the callbacks of some groups. */
static inline enum dt_group of_tracee(enum dt_group group, ErlNifEnv *env, ERL_NIF_TERM tracee) {
    switch (group) {
#define GROUP(group)
#define PORT_GROUP(group, callbacks)                                                               \
    case DT_GROUP_##callbacks:                                                                     \
        return enif_is_port(env, tracee) ? DT_GROUP_##group : DT_GROUP_##callbacks;
#include "sources/routes.def"
    default:
        return group;
    }
}

/* -- 2. Is the event wanted? -------------------------------------------------------- */

/* Checked by backend, because most probes have one: that halves the number of checks, which are
   almost always the last work of a callback. */
#define BACKEND(name)                                                                              \
    static bool is_any_enabled_in_##name(const struct dt_tag *t) {                                 \
        const struct dt_tag_probe *p = t->of[DT_BACKEND_##name].probes,                            \
                                  *end = p + t->of[DT_BACKEND_##name].count;                       \
                                                                                                   \
        for (; p < end; p++)                                                                       \
            if (dt_##name##_is_enabled(p->probe))                                                  \
                return true;                                                                       \
        return false;                                                                              \
    }
#include "catalogue/probes.def"

static bool is_any_enabled(const struct dt_tag *t) {
#define BACKEND(name) || is_any_enabled_in_##name(t)
    return false
#include "catalogue/probes.def"
        ;
}

/* For the application's tracer, only the allowed probes count. */
static bool is_wanted(const struct dt_tag *t, ERL_NIF_TERM state) {
    if (!is_any_enabled(t))
        return false;
    if (!dt_gate_is_for(state))
        return true;
    for (unsigned i = 0; i < t->count; i++)
        if (dt_is_enabled(t->routes[i]->probe) && dt_gate_allows(t->routes[i]->probe))
            return true;
    return false;
}

/* The VM does not say which function is called: it may be one of a module with its own group. */
static bool is_wanted_in(enum dt_group group, ERL_NIF_TERM tag, ERL_NIF_TERM state) {
    if (is_wanted(dt_tag_of(group, tag), state))
        return true;
    if (group != DT_GROUP_call)
        return false;
#define GROUP(group)
#define MODULE_GROUP(group, module) || is_wanted(dt_tag_of(DT_GROUP_##group, tag), state)
    return false
#include "sources/routes.def"
        ;
}

/* The budget is checked last: an event without an enabled probe does not count as skipped. */
static ERL_NIF_TERM within_budget(bool wanted, ERL_NIF_TERM state) {
    return wanted && (!dt_gate_is_for(state) || dt_gate_may_make()) ? atom_trace : atom_discard;
}

/* Calls have a separate budget, in addition to that of all events. */
static bool may_call(enum dt_group group, ERL_NIF_TERM state) {
    return group != DT_GROUP_call || !dt_gate_is_for(state) || dt_calls_may_make();
}

static bool is_held(enum dt_group group, ERL_NIF_TERM state) {
    return dt_gate_is_for(state) && dt_gate_holds(group);
}

static ERL_NIF_TERM answer(enum dt_group group, ERL_NIF_TERM tag, ERL_NIF_TERM state) {
    return within_budget(
        is_wanted_in(group, tag, state) && !is_held(group, state) && may_call(group, state), state);
}

/* -- 3. Route, decode, fire --------------------------------------------------------- */

/* Events that could not be decoded, per probe; the last element counts those of an unknown tag or
   without a term. */
static _Atomic uint64_t undecoded[DT_PROBES + 1];

static void count_undecoded(enum dt_probe probe) {
    atomic_fetch_add_explicit(&undecoded[probe], 1, memory_order_relaxed);
}

uint64_t dt_tracer_undecoded(enum dt_probe probe) {
    return atomic_load_explicit(&undecoded[probe], memory_order_relaxed);
}

/* Returns the tag's routes that are enabled in the backend, as bits. Routes without a decoder do
   not count. */
#define BACKEND(name)                                                                              \
    static inline uint64_t enabled_in_##name(const struct dt_tag *t) {                             \
        const struct dt_tag_probe *p = t->of[DT_BACKEND_##name].probes,                            \
                                  *end = p + t->of[DT_BACKEND_##name].decoded;                     \
        uint64_t enabled = 0;                                                                      \
                                                                                                   \
        for (; p < end; p++)                                                                       \
            if (dt_##name##_is_enabled(p->probe))                                                  \
                enabled |= UINT64_C(1) << p->route;                                                \
        return enabled;                                                                            \
    }
#include "catalogue/probes.def"

static void decode_and_fire(const struct dt_route *route, unsigned backends,
                            struct dt_traced *traced) {
    union dt_event event;

    dt_text_open(traced->text);
    traced->probe = route->probe;
    traced->type = route->type;
    switch (route->decode(traced, &event)) {
    case DT_DECODED:
        dt_fire_in(backends, route->probe, &event);
        break;
    case DT_UNDECODED:
        count_undecoded(route->probe);
        break;
    case DT_NO_EVENT:
        break;
    }
}

/* Reads the state of the backends once, before anything is decoded. Always inlined: it is most of
   what a callback does, but compilers would not inline it into both callers. */
static inline __attribute__((always_inline)) void fire_enabled(const struct dt_tag *t,
                                                               struct dt_traced *traced) {
    const uint64_t enabled[DT_BACKENDS] = {
#define BACKEND(name) [DT_BACKEND_##name] = enabled_in_##name(t),
#include "catalogue/probes.def"
    };
    uint64_t left = 0;

    for (int backend = 0; backend < DT_BACKENDS; backend++)
        left |= enabled[backend];
    for (; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        unsigned backends = 0;

        for (int backend = 0; backend < DT_BACKENDS; backend++)
            backends |= (unsigned)(enabled[backend] >> i & 1) << backend;
        if (!dt_gate_is_for(traced->state) || dt_gate_allows(t->routes[i]->probe))
            decode_and_fire(t->routes[i], backends, traced);
    }
}

/* Fires the probes of the group that the called function implies. Returns whether the probes of
   calls fire, too. */
static bool fire_implied(struct dt_traced *traced) {
    const struct dt_implied_call is = dt_implied_calls_look(traced);

    if (is.group != DT_GROUPS)
        fire_enabled(dt_tag_of(is.group, traced->tag), traced);
    return is.is_of_calls;
}

static ERL_NIF_TERM trace(enum dt_group group, ERL_NIF_TERM tag, ErlNifEnv *env,
                          const ERL_NIF_TERM argv[]) {
    const struct dt_tag *t = dt_tag_of(group, tag);
    struct dt_text text;
    struct dt_traced traced = {.env = env,
                               .tag = argv[0],
                               .state = argv[1],
                               .tracee = argv[2],
                               .term = argv[3],
                               .opts = argv[4],
                               .text = &text};

    /* The VM may pass no term with a message of a port whose receiver has exited, for example when
       a listening socket is closed after its acceptor was killed. */
    if (traced.term == DT_NO_TERM) {
        count_undecoded(DT_PROBES);
        return atom_ok;
    }
    if (dt_noters[group])
        dt_noters[group](&traced);
    if (is_held(group, traced.state) || (dt_gate_is_for(traced.state) && !dt_gate_take()))
        return atom_ok;
    if (group != DT_GROUP_call || fire_implied(&traced))
        fire_enabled(t, &traced);
    if (t->tag == DT_NO_TAG)
        count_undecoded(DT_PROBES);
    return atom_ok;
}

/* -- The callbacks for any tag ------------------------------------------------------ */

/*
 * The VM calls enabled/3 and trace/5 only for trace_status and seq_trace; for all other tags it
 * calls those of a group. The contract of erl_tracer allows any tag.
 */
static bool group_takes(enum dt_group group, bool is_port) {
    switch (group) {
    case DT_GROUP_procs:
    case DT_GROUP_running_procs:
    case DT_GROUP_send:
    case DT_GROUP_receive:
        return !is_port;
    case DT_GROUP_ports:
    case DT_GROUP_running_ports:
    case DT_GROUP_port_send:
    case DT_GROUP_port_receive:
        return is_port;
    case DT_GROUP_seq_trace:
        return false;
    default:
        return true;
    }
}

/* For a tag that no group has, the first group, where it is also unknown. */
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

/* A tracer that a user has set is not removed, because a consumer may attach later. */
static ERL_NIF_TERM trace_status(ErlNifEnv *env, ERL_NIF_TERM state) {
    return !dt_gate_is_for(state) || dt_gate_is_open(env) ? atom_trace : atom_remove;
}

/* The kind of a seq_trace event is passed only to trace/5, so it suffices that any kind is wanted.
 */
static ERL_NIF_TERM answer_seq_trace(ERL_NIF_TERM state) {
    bool wanted = false;

    for (const struct dt_tag *t = dt_tags[DT_GROUP_seq_trace]; t->tag != DT_NO_TAG && !wanted; t++)
        wanted = is_wanted(t, state);
    return within_budget(wanted, state);
}

DT_NIF(dt_tracer_enabled) {
    if (argv[0] == atom_trace_status)
        return trace_status(env, argv[1]);
    if (argv[0] == atom_seq_trace)
        return answer_seq_trace(argv[1]);
    return answer(group_of(env, argv[0], argv[2]), argv[0], argv[1]);
}

DT_NIF(dt_tracer_trace) {
    if (argv[0] == atom_seq_trace)
        return trace(DT_GROUP_seq_trace, seq_trace_kind(env, argv[3]), env, argv);
    return trace(group_of(env, argv[0], argv[2]), argv[0], env, argv);
}
