#include "sources/compat/compat.h"

#include "sources/compat/builtins.h"
#include "sources/compat/size.h"

bool dt_compat_start(ErlNifEnv *env, ERL_NIF_TERM sizes, ERL_NIF_TERM builtins) {
    const ERL_NIF_TERM *lists;
    unsigned left_out;
    int two;

    return dt_size_calibrate(env, sizes) && enif_get_tuple(env, builtins, &two, &lists) &&
           two == 2 && dt_builtins_set(env, lists[0], lists[1], &left_out);
}

DT_NIF(dt_compat_set_builtins) {
    unsigned left_out;

    if (!dt_builtins_set(env, argv[0], argv[1], &left_out))
        return enif_make_badarg(env);
    return enif_make_uint(env, left_out);
}
