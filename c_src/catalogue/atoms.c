#include "catalogue/atoms.h"

#define ATOM(name) ERL_NIF_TERM atom_##name;
#include "catalogue/atoms.def"

void dt_atoms_make(ErlNifEnv *env) {
#define ATOM(name) atom_##name = enif_make_atom(env, #name);
#include "catalogue/atoms.def"
}
