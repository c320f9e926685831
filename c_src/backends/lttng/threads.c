/*
 * The threads of LTTng's library: one per expected session daemon. Their names end in "-ust".
 */
#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for O_CLOEXEC */

#include "backends/lttng/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_of_lttng(int tasks, const char *task) {
    static const char suffix[] = "-ust\n";
    char path[PATH_MAX], name[64];
    ssize_t length = 0;
    int fd;

    (void)snprintf(path, sizeof path, "%s/comm", task);
    if ((fd = openat(tasks, path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    length = read(fd, name, sizeof name);
    (void)close(fd);
    return length >= (ssize_t)sizeof suffix - 1 &&
           memcmp(name + length - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0;
}

int dt_lttng_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int count = 0;

    if (!tasks)
        return -1;
    while ((task = readdir(tasks)))
        count += is_of_lttng(dirfd(tasks), task->d_name);
    (void)closedir(tasks);
    return count;
}
