/*
 * Wait files: the files on which LTTng's threads wait, one per session daemon.
 */
#ifndef DT_BACKENDS_LTTNG_WAIT_FILE_H
#define DT_BACKENDS_LTTNG_WAIT_FILE_H

#include "backends/lttng/daemons.h"

/* Creates the daemon's wait file as LTTng's library needs it. Returns NULL, or the reason why it
   cannot. `harmful`: with this file, LTTng's library would block or crash the VM, and must not be
   loaded. */
const char *dt_lttng_wait_file(const struct dt_lttng_daemon *daemon, bool *harmful);

#endif
