/*
 * Files: the calls of `prim_file`, through which all file I/O of Erlang goes.
 *
 * A call of one of its functions is an event of the group `files`, beside the group `call`. A
 * consumer of the probes of files has the application trace these functions, though no
 * configuration lists them. A consumer of function_call must not see such calls: so the library is
 * told which functions are traced for the probes of files alone.
 */
#ifndef DT_SOURCES_FILES_H
#define DT_SOURCES_FILES_H

#include <stdbool.h>

#include "sources/decode.h"
#include "sources/nif.h"

struct dt_file_event {
    bool is_of_files, is_of_calls; /* the groups that get it */
};

/* For an event of the group `call`. */
struct dt_file_event dt_files_look(const struct dt_traced *trace);

/* [{Function, Arity}]: the functions of prim_file that are traced for the probes of files alone. */
dt_nif dt_files_set;

#endif
