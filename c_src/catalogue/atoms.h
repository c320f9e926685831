/*
 * The atoms of dt_atoms.def as variables: atom_<name>. An atom's value never
 * changes while the VM lives, so making them again on an upgrade changes nothing.
 */
#ifndef DT_ATOMS_H
#define DT_ATOMS_H

#include <erl_nif.h>

#define ATOM(name) extern ERL_NIF_TERM atom_##name;
#include "dt_atoms.def"

void dt_atoms_make(ErlNifEnv *env);

#endif
