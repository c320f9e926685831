/*
 * Only the first error is stored; data written after it is dropped.
 *
 * The folder may belong to another user, who can create, rename and remove any file in it. The file
 * is therefore created under an unpredictable name and is readable only by its owner until it is
 * complete. Writing succeeds only if the final path leads to this file at the end.
 */
#include "shared/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct dt_file {
    FILE *stream;
    char *path, *name;    /* as given; within the folder */
    int folder, contents; /* descriptors; -1 for standard output, devices and pipes */
    char *part;           /* the temporary name until it is complete; else NULL */
    GError *error;
};

static const char not_ours[] = "it belongs to another user, or another process has replaced it";

static void keep_failure(struct dt_file *file, const char *why) {
    if (!file->error)
        g_set_error(&file->error, DT_ERROR, 0, "%s: %s", file->path, why);
}

static void keep_error(struct dt_file *file) {
    keep_failure(file, g_strerror(errno));
}

/* -- Direct output ---------------------------------------------------------------------- */

/* The number of the descriptor of this process that a path names; -1 for any other path. The file
 * behind such a path is not always one that can be opened again. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        uint64_t number;

        if (g_str_has_prefix(path, folders[i]) &&
            g_ascii_string_to_unsigned(path + strlen(folders[i]), 10, 0, INT_MAX, &number, NULL))
            return (int)number;
    }
    return -1;
}

static bool is_same(const struct stat *one, const struct stat *other) {
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

/* Devices and pipes are written to directly, because a rename would replace them, even /dev/null.
 * Those of another user are not opened, because opening may block or have side effects. */
static FILE *open_special(struct dt_file *file, const struct stat *found) {
    struct stat opened;
    int fd;

    if (found->st_uid != 0 && found->st_uid != geteuid()) {
        keep_failure(file, "it is a device or a pipe of another user");
        return NULL;
    }
    fd = openat(file->folder, file->name, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &opened) == 0 && is_same(&opened, found))
        return fdopen(fd, "wb");
    close(fd);
    keep_failure(file, not_ours);
    return NULL;
}

long dt_file_width(const struct dt_file *file) {
    struct winsize size;

    return file->stream && ioctl(fileno(file->stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* -- Output through a temporary file ------------------------------------------------------ */

/* Whether the name leads to the file without a symbolic link, and the file belongs to this user: a
 * file system may assign new files to another user. */
static bool leads_to(const struct dt_file *file, int folder, const char *name) {
    struct stat mine, there;

    return fstat(file->contents, &mine) == 0 &&
           fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&mine, &there) &&
           mine.st_uid == geteuid();
}

/* The mode also limits the permissions of a default ACL of the folder. */
static FILE *open_part(struct dt_file *file) {
    char *part = g_strdup_printf("dyntrace-%08x%08x.part", g_random_int(), g_random_int());
    int fd = openat(file->folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    file->contents = fd;
    if (fd < 0) {
        g_free(part);
        return NULL;
    }
    file->part = part;
    if (!leads_to(file, file->folder, part)) {
        keep_failure(file, not_ours);
        return NULL;
    }
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

/* An error is ignored, because some file systems have one mode for all files. */
static void open_to_others(const struct dt_file *file) {
    mode_t mask = umask(0);

    umask(mask);
    (void)!fchmod(file->contents, 0666 & ~mask);
}

static void take_name(struct dt_file *file) {
    if (!leads_to(file, file->folder, file->part)) {
        keep_failure(file, not_ours);
        return;
    }
    open_to_others(file);
    if (renameat(file->folder, file->part, file->folder, file->name) != 0) {
        keep_error(file);
        return;
    }
    g_clear_pointer(&file->part, g_free);
    /* The folder itself may have been moved. */
    if (!leads_to(file, AT_FDCWD, file->path))
        keep_failure(file, not_ours);
}

static FILE *open_in_folder(struct dt_file *file) {
    g_autofree char *folder = g_path_get_dirname(file->path);
    struct stat found;

    file->name = g_path_get_basename(file->path);
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder < 0)
        return NULL;
    if (fstatat(file->folder, file->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? open_part(file) : NULL;
    return S_ISREG(found.st_mode) || S_ISLNK(found.st_mode) ? open_part(file)
                                                            : open_special(file, &found);
}

/* -- The file --------------------------------------------------------------------------- */

static FILE *open_stream(struct dt_file *file) {
    int fd = descriptor_of(file->path);

    if (fd == STDOUT_FILENO)
        return stdout;
    if (fd < 0)
        return open_in_folder(file);
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

struct dt_file *dt_file_open(const char *path, GError **error) {
    struct dt_file *file = g_new0(struct dt_file, 1);

    file->path = g_strdup(path);
    file->folder = file->contents = -1;
    file->stream = open_stream(file);
    if (!file->stream) {
        keep_error(file);
        g_propagate_error(error, g_steal_pointer(&file->error));
        dt_file_discard(file);
        return NULL;
    }
    if (file->stream != stdout)
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

/* Standard output stays open, because babeltrace2 owns it. */
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
    if (file->part && !file->error)
        take_name(file);
    if (!file->error) {
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
        unlinkat(file->folder, file->part, 0);
    if (file->contents >= 0)
        close(file->contents);
    if (file->folder >= 0)
        close(file->folder);
    g_clear_error(&file->error);
    g_free(file->path);
    g_free(file->name);
    g_free(file->part);
    g_free(file);
}
