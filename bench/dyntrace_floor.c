/* The baselines: a tracer that does nothing, and an empty NIF. They measure the cost of the VM. */
#include <erl_nif.h>

/* enabled(Tag, State, Tracee): returns the state, `trace` or `discard`. */
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)env, (void)argc;
    return argv[1];
}

/* trace(Tag, State, Tracee, Term, Opts), and nif(A, B, C, D). */
static ERL_NIF_TERM first(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)env, (void)argc;
    return argv[0];
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info) {
    (void)env, (void)data, (void)info;
    return 0;
}

static ErlNifFunc functions[] = {
    {"enabled", 3, enabled, 0}, {"trace", 5, first, 0}, {"nif", 4, first, 0}};

ERL_NIF_INIT(dyntrace_floor, functions, load, NULL, NULL, NULL)
