/*
 * The first error is kept; what is written after it is dropped.
 *
 * A file is written beside its place, and moved there when it is complete. Who writes it has locked
 * it, so a second sink with the same path fails.
 */
#include "shared/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct dt_file {
    FILE *stream;
    char *path, *part; /* `part` is NULL for standard output, devices and pipes */
    int lock;          /* of `part`, held until it has been moved; -1 */
    GError *error;
};

static void keep_error(struct dt_file *file) {
    if (!file->error)
        g_set_error(&file->error, DT_ERROR, 0, "%s: %s", file->path, g_strerror(errno));
}

static bool is_special(const char *path) {
    struct stat at;

    return stat(path, &at) == 0 && !S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode);
}

/* Another writer may have moved or removed the file after it was opened here. */
static bool is_at(int fd, const char *path) {
    struct stat mine, there;

    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

/* Some file systems have no locks. */
static bool lock(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* Closes it, and returns -1 with errno. */
static int give_up(int fd, int error) {
    close(fd);
    errno = error;
    return -1;
}

/* The empty file `path`, which is locked; -1 with errno. Others may have put a link or a pipe
 * there. */
static int open_locked(const char *path) {
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);

        if (fd < 0)
            return -1;
        if (!lock(fd))
            return give_up(fd, EBUSY);
        if (is_at(fd, path))
            return ftruncate(fd, 0) == 0 ? fd : give_up(fd, errno);
        close(fd);
    }
}

static FILE *open_part(struct dt_file *file) {
    char *part = g_strconcat(file->path, ".part", NULL);
    int fd;

    file->lock = open_locked(part);
    if (file->lock < 0) {
        g_free(part);
        return NULL;
    }
    file->part = part;
    fd = fcntl(file->lock, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

struct dt_file *dt_file_open(const char *path, GError **error) {
    struct dt_file *file = g_new0(struct dt_file, 1);

    file->path = g_strdup(path);
    file->lock = -1;
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
        return file;
    }
    /* A device or a pipe is written to: a rename would replace it, /dev/null for everybody. */
    file->stream = is_special(path) ? fopen(path, "wbe") : open_part(file);
    if (!file->stream) {
        g_set_error(error, DT_ERROR, 0, "%s: %s", path,
                    errno == EBUSY ? "somebody else is writing it" : g_strerror(errno));
        dt_file_discard(file);
        return NULL;
    }
    setvbuf(file->stream, NULL, _IOFBF, 1 << 18);
    return file;
}

void dt_file_write(struct dt_file *file, const void *bytes, size_t size) {
    if (!file->error && size && fwrite(bytes, size, 1, file->stream) != 1)
        keep_error(file);
}

void dt_file_printf(struct dt_file *file, const char *format, ...) {
    va_list arguments;

    if (file->error)
        return;
    va_start(arguments, format);
    if (vfprintf(file->stream, format, arguments) < 0)
        keep_error(file);
    va_end(arguments);
}

const GError *dt_file_failed(const struct dt_file *file) {
    return file ? file->error : NULL;
}

/* Standard output stays open: it is babeltrace2's. */
static void end_stream(struct dt_file *file) {
    FILE *stream = file->stream;
    bool is_ended;

    file->stream = NULL;
    is_ended = stream == stdout ? fflush(stream) == 0 : fclose(stream) == 0;
    if (!is_ended)
        keep_error(file);
}

bool dt_file_close(struct dt_file *file, GError **error) {
    end_stream(file);
    if (file->part && !file->error && rename(file->part, file->path) != 0)
        keep_error(file);
    if (!file->error) {
        g_clear_pointer(&file->part, g_free);
        dt_file_discard(file);
        return true;
    }
    g_propagate_error(error, g_steal_pointer(&file->error));
    dt_file_discard(file);
    return false;
}

bool dt_file_finish(struct dt_file **file, const GString *text, GError **error) {
    dt_file_write(*file, text->str, text->len);
    return dt_file_close(g_steal_pointer(file), error);
}

void dt_file_discard(struct dt_file *file) {
    if (!file)
        return;
    if (file->stream)
        end_stream(file);
    if (file->part)
        unlink(file->part);
    if (file->lock >= 0)
        close(file->lock);
    g_clear_error(&file->error);
    g_free(file->path);
    g_free(file->part);
    g_free(file);
}
