/*
 * Resources that the operating system limits. They are read here because the VM's own file
 * functions require a dirty I/O scheduler, and all of them may be blocked.
 */
#ifndef DT_RESOURCES_H
#define DT_RESOURCES_H

#include "sources/nif.h"

/* {Open, Limit}: the open file descriptors of the process, and how many it may have (RLIMIT_NOFILE,
   soft); `undefined` if unknown or unlimited. */
dt_nif dt_resources_open_files;

/* Path :: binary(), in a folder of the kernel: the contents, at most 4 kB; `undefined` if the file
   cannot be read. */
dt_nif dt_resources_kernel_file;

#endif
