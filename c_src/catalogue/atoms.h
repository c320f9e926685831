/*
 * The atoms of catalogue/atoms.def as variables: atom_<name>. The value of an atom is constant
 * while the VM runs, so an upgrade can create them again without effect.
 */
#ifndef DT_CATALOGUE_ATOMS_H
#define DT_CATALOGUE_ATOMS_H

#include <erl_nif.h>

#define ATOM(name) extern ERL_NIF_TERM atom_##name;
#include "catalogue/atoms.def"

void dt_atoms_make(ErlNifEnv *env);

#endif
