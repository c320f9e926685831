/*
 * The places where LTTng's library expects session daemons, and why that library is not loaded
 * before they are checked. Its constructor runs under the dynamic linker's lock. There it
 *
 *     - waits up to three seconds (LTTNG_UST_REGISTER_TIMEOUT) for a daemon that hangs
 *       (await_daemons.h);
 *     - forks to create its wait files, the files that its threads wait on, and reads the child's
 *       status. The VM ignores SIGCHLD, so there is no status, and the library starts no thread
 *       (wait_file.h, threads.h);
 *     - reads the wait files through a mapping: in a full /dev/shm that is SIGBUS.
 *
 * So the loading thread first waits for the daemons, and makes the wait files, without any lock.
 */
#ifndef DT_BACKENDS_LTTNG_DAEMONS_H
#define DT_BACKENDS_LTTNG_DAEMONS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Variables of the environment that LTTng's library reads. Empty: not set. */
struct dt_lttng_env {
    char home[PATH_MAX];
    char app_path[PATH_MAX];
};

/* A place where LTTng's library expects a session daemon. */
struct dt_lttng_daemon {
    struct sockaddr_un socket;
    char wait_file[PATH_MAX]; /* its first word becomes 1 when a daemon starts */
    mode_t mode;              /* of that file */
    bool own;                 /* the file has to be this user's */
};

/* Root's first, then the user's; or that of LTTNG_UST_APP_PATH alone. */
enum { DT_LTTNG_DAEMONS = 2 };
struct dt_lttng_daemons {
    unsigned count;
    struct dt_lttng_daemon daemon[DT_LTTNG_DAEMONS];
};

/* Must be called on a thread of the VM, which may be changing the environment otherwise. */
void dt_lttng_env_read(struct dt_lttng_env *env);

/* Reads the places from the file of LTTng's library. False if there is no such library, or if its
   file does not contain them as expected. */
bool dt_lttng_daemons_find(struct dt_lttng_daemons *daemons, const struct dt_lttng_env *env);

#endif
