/*
 * Files: the calls of `prim_file`, through which all file I/O of Erlang goes.
 *
 * A call of one of its functions is an event of the group `files` as well as of the group `call`.
 * While a file probe has a consumer, the application traces these functions even if they are not
 * configured. A consumer of function_call must not see those calls, so the library has a list of
 * the functions that are traced only for the file probes.
 */
#ifndef DT_SOURCES_FILES_H
#define DT_SOURCES_FILES_H

#include <stdbool.h>

#include "sources/decode.h"
#include "sources/nif.h"

struct dt_file_event {
    bool is_of_files, is_of_calls; /* the groups to which it belongs */
};

/* For an event of the group `call`. */
struct dt_file_event dt_files_look(const struct dt_traced *trace);

/* [{Function, Arity}]: the functions of prim_file that are traced only for the file probes. */
dt_nif dt_files_set;

#endif
