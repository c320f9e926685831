#include "text/binary.h"

/* Copies up to LARGE bytes are fast. A part of PART bytes is not a copy itself. */
enum { LARGE = 4096, PART = 256 };

bool dt_binary_is_large_copy(ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifBinary *binary) {
    ErlNifBinary part;

    return binary->size > LARGE &&
           enif_inspect_binary(env, enif_make_sub_binary(env, term, 0, PART), &part) &&
           part.data != binary->data;
}
