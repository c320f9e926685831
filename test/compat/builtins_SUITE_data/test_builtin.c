/* The NIF of a version of the module test_builtin: value/0 returns 2. */
#include <erl_nif.h>

static ERL_NIF_TERM value(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return enif_make_int(env, 2);
}

static ErlNifFunc functions[] = {{"value", 0, value, 0}};

ERL_NIF_INIT(test_builtin, functions, NULL, NULL, NULL, NULL)
