/* A NIF that occupies its scheduler for a number of milliseconds, without using a CPU. */
#include <erl_nif.h>
#include <unistd.h>

static ERL_NIF_TERM hang(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    int ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    usleep(1000 * (useconds_t)ms);
    return enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {{"hang", 1, hang, 0}};

ERL_NIF_INIT(test_stuck_nif, functions, NULL, NULL, NULL, NULL)
