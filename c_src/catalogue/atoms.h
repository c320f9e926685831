/*
 * The atoms of catalogue/atoms.def as variables: atom_<name>. An atom's value never
 * changes while the VM lives, so making them again on an upgrade changes nothing.
 */
#ifndef DT_CATALOGUE_ATOMS_H
#define DT_CATALOGUE_ATOMS_H

#include <erl_nif.h>

#define ATOM(name) extern ERL_NIF_TERM atom_##name;
#include "catalogue/atoms.def"

void dt_atoms_make(ErlNifEnv *env);

#endif
