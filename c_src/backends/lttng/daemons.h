/*
 * The sockets and files by which LTTng's library finds session daemons. They are checked before
 * that library is loaded, because its constructor runs under the dynamic linker's lock. There it
 *
 *     - waits up to three seconds (LTTNG_UST_REGISTER_TIMEOUT) for a daemon that hangs
 *       (await_daemons.h);
 *     - forks to create its wait files, the files on which its threads wait, and reads the child's
 *       status. The VM ignores SIGCHLD, so no status arrives, and the library does not start a
 *       thread (wait_file.h, threads.h);
 *     - reads the wait files through a mapping: if /dev/shm is full, that raises SIGBUS.
 *
 * So the loading thread first waits for the daemons, and creates the wait files, without any lock.
 */
#ifndef DT_BACKENDS_LTTNG_DAEMONS_H
#define DT_BACKENDS_LTTNG_DAEMONS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Environment variables of LTTng's library. Empty: not set. */
struct dt_lttng_env {
    char home[PATH_MAX];
    char app_path[PATH_MAX];
};

/* A session daemon that LTTng's library expects. */
struct dt_lttng_daemon {
    struct sockaddr_un socket;
    char wait_file[PATH_MAX]; /* its first word becomes 1 when a daemon starts */
    mode_t mode;              /* of that file */
    bool own;                 /* the file must belong to this user */
};

/* Root's first, then the user's; or only that of LTTNG_UST_APP_PATH. */
enum { DT_LTTNG_DAEMONS = 2 };
struct dt_lttng_daemons {
    unsigned count;
    struct dt_lttng_daemon daemon[DT_LTTNG_DAEMONS];
};

/* Must be called on a thread of the VM: otherwise the VM might change the environment meanwhile. */
void dt_lttng_env_read(struct dt_lttng_env *env);

/* Reads the paths from the file of LTTng's library. False if there is no such library, or if its
   file does not contain them as expected. */
bool dt_lttng_daemons_find(struct dt_lttng_daemons *daemons, const struct dt_lttng_env *env);

#endif
