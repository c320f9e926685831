#include "text/heap.h"

ERL_NIF_TERM dt_heap_mark;
bool dt_heap_found;

void dt_heap_find(ErlNifEnv *env) {
    ERL_NIF_TERM tuple = enif_make_tuple1(env, enif_make_int(env, 0));
    const ERL_NIF_TERM *el;
    int arity;

    dt_heap_mark = tuple & DT_HEAP_MARK;
    dt_heap_found =
        dt_heap_mark != 0 && enif_get_tuple(env, tuple, &arity, &el) && dt_heap_of(tuple) == el - 1;
}
