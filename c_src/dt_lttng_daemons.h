/*
 * The session daemons of LTTng, before its library is loaded. That library's constructor
 * runs under the dynamic linker's lock, and there
 *
 *     waits up to three seconds (LTTNG_UST_REGISTER_TIMEOUT) for a daemon that hangs,
 *     forks to create the files that its threads wait on, and takes the child's status. The
 *     VM ignores SIGCHLD, so there is no status, and without it no thread either,
 *     reads these files through a mapping: in a full /dev/shm that is SIGBUS.
 *
 * So all of that is looked after here, by the thread that loads, without any lock.
 */
#ifndef DT_LTTNG_DAEMONS_H
#define DT_LTTNG_DAEMONS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

/* What the library reads from the environment. Empty: not set. */
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

/* To be called on a thread of the VM. */
void dt_lttng_env_read(struct dt_lttng_env *env);

/* Reads out of the file of LTTng's library where that looks for daemons. False where there
   is no such library, or it is another one than is known here. */
bool dt_lttng_daemons_find(struct dt_lttng_daemons *daemons, const struct dt_lttng_env *env);

/* Returns when each daemon that is there has answered within a second; calls `waiting` with
   the one that has not. */
void dt_lttng_daemons_await(const struct dt_lttng_daemons *daemons,
                            void (*waiting)(const struct dt_lttng_daemon *daemon));

/* Makes the file what LTTng's library needs. NULL, or what is wrong with it. `harmful`: the
   library must not see it, or the VM stops or ends. */
const char *dt_lttng_wait_file(const struct dt_lttng_daemon *daemon, bool *harmful);

/* How many threads of LTTng's library talk to daemons or wait for one; -1 where /proc does
   not tell. */
int dt_lttng_threads(void);

#endif
