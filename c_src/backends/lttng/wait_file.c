/*
 * Wait files: the files on which LTTng's threads wait. Any user may create a file of that name in
 * /dev/shm. So this code does not follow links, opens a file for writing only after checking it,
 * and gives a new file its name when it is complete.
 */
#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for mkostemp */

#include "backends/lttng/wait_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int32_t no_daemon = 0;

/* Writes the word, so that the file has a page: reading a hole would allocate one. */
static bool fill(int fd) {
    return pwrite(fd, &no_daemon, sizeof no_daemon, 0) == sizeof no_daemon &&
           ftruncate(fd, sysconf(_SC_PAGESIZE)) == 0;
}

/* link(2) does not replace files: if the name exists meanwhile, that file is used. */
static const char *create(const struct dt_lttng_daemon *daemon) {
    static const char unnamed[] = ".dyntrace-XXXXXX";
    char path[PATH_MAX + sizeof unnamed];
    int folder = (int)(strrchr(daemon->wait_file, '/') + 1 - daemon->wait_file), fd, error = 0;

    (void)snprintf(path, sizeof path, "%.*s%s", folder, daemon->wait_file, unnamed);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    if (!fill(fd) || fchmod(fd, daemon->mode) != 0 ||
        (link(path, daemon->wait_file) != 0 && errno != EEXIST))
        error = errno;
    (void)unlink(path);
    (void)close(fd);
    return error ? strerror(error) : NULL;
}

/* Another process of this user may have created the file, and ended before it set its size. */
static bool grow(const struct dt_lttng_daemon *daemon) {
    int fd = open(daemon->wait_file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool filled = fd >= 0 && fill(fd);

    if (fd >= 0)
        (void)close(fd);
    return filled;
}

/* Reads the word through a mapping, as LTTng will, but in a system call: if the file system is full
   and has no page for it, the call fails with EFAULT, whereas LTTng's read would raise SIGBUS. */
static bool is_readable(int fd) {
    void *page = mmap(NULL, sizeof no_daemon, PROT_READ, MAP_SHARED, fd, 0);
    int ends[2];
    bool readable;

    if (page == MAP_FAILED)
        return false;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)munmap(page, sizeof no_daemon);
        return false;
    }
    readable = write(ends[1], page, sizeof no_daemon) == sizeof no_daemon;
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)munmap(page, sizeof no_daemon);
    return readable;
}

/* It must have a single name: a second one would mean that it is a hard link to some other file of
 * this user. */
static bool is_mine(const struct stat *file) {
    return file->st_uid == getuid() && file->st_nlink == 1;
}

static const char *check(const struct dt_lttng_daemon *daemon, int fd, bool *harmful) {
    struct stat file;

    if (fstat(fd, &file) != 0)
        return strerror(errno);
    if (!S_ISREG(file.st_mode)) {
        /* A FIFO: LTTng's open() would wait for a process to open the other end. */
        *harmful = true;
        return "not a regular file";
    }
    if (daemon->own && file.st_uid != getuid())
        return "belongs to another user";
    if (file.st_size < (off_t)sizeof no_daemon && !(is_mine(&file) && grow(daemon)))
        return "empty";
    if (!is_readable(fd)) {
        *harmful = true;
        return "no space left for it";
    }
    return NULL;
}

const char *dt_lttng_wait_file(const struct dt_lttng_daemon *daemon, bool *harmful) {
    const char *problem = NULL;
    int fd;

    *harmful = false;
    if (access(daemon->wait_file, F_OK) != 0 && errno == ENOENT)
        problem = create(daemon);
    if (problem)
        return problem;
    fd = open(daemon->wait_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    problem = check(daemon, fd, harmful);
    (void)close(fd);
    return problem;
}
