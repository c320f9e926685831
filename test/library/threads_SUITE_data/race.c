/* Schedulers write one variable without synchronization: ThreadSanitizer has to report that. */
#include <erl_nif.h>

static volatile unsigned long shared;

static ERL_NIF_TERM race(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return enif_make_ulong(env, ++shared);
}

static ErlNifFunc functions[] = {{"race", 0, race, 0}};

ERL_NIF_INIT(threads_SUITE, functions, NULL, NULL, NULL, NULL)
