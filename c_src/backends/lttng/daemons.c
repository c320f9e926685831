/*
 * Finds the paths of session daemons. The name of the socket contains the ABI number, which differs
 * between versions although the library's name does not, and its folder depends on how the library
 * was built. So both are read from the file that the dynamic linker would load.
 */
#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for memmem */

#include "backends/lttng/daemons.h"

#include "backends/lttng/wait_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* -- The environment ---------------------------------------------------------------- */

/* A value that is too long counts as not set: socket paths are shorter. */
static void read_variable(char *copy, size_t size, const char *name) {
    const char *value = secure_getenv(name);
    size_t length = value ? strlen(value) : size;

    if (length >= size)
        length = 0;
    else
        memcpy(copy, value, length);
    copy[length] = '\0';
}

void dt_lttng_env_read(struct dt_lttng_env *env) {
    read_variable(env->home, sizeof env->home, secure_getenv("LTTNG_HOME") ? "LTTNG_HOME" : "HOME");
    read_variable(env->app_path, sizeof env->app_path, "LTTNG_UST_APP_PATH");
    /* If there are several, LTTng uses the first one. */
    env->app_path[strcspn(env->app_path, ":")] = '\0';
}

/* -- The library's file --------------------------------------------------------------- */

/* Found by loading liblttng-ust-common, on which liblttng-ust depends: it is in the same folder,
   and its constructor does not wait. */
static bool library_path(char path[PATH_MAX]) {
    void *common = dlopen("liblttng-ust-common.so.1", RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map;
    int folder, length;

    if (!common || dlinfo(common, RTLD_DI_LINKMAP, &map) != 0 || !strrchr(map->l_name, '/'))
        return false;
    folder = (int)(strrchr(map->l_name, '/') - map->l_name);
    length = snprintf(path, PATH_MAX, "%.*s/liblttng-ust.so.1", folder, map->l_name);
    return length > 0 && length < PATH_MAX;
}

struct image {
    const char *bytes;
    size_t size;
};

static bool map_library(struct image *image) {
    char path[PATH_MAX];
    struct stat file;
    void *bytes = MAP_FAILED;
    int fd;

    if (!library_path(path) || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0) {
        bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        *image = (struct image){.bytes = bytes, .size = (size_t)file.st_size};
    }
    (void)close(fd);
    return bytes != MAP_FAILED;
}

/* The path of root's socket, a string in the image: "/var/run/lttng/lttng-ust-sock-8". */
static bool find_socket(const struct image *image, char *path, size_t size) {
    static const char name[] = "/lttng-ust-sock-";
    const char *found = memmem(image->bytes, image->size, name, sizeof name - 1);
    const char *end = image->bytes + image->size, *from = found;
    size_t length;

    if (!found)
        return false;
    while (from > image->bytes && from[-1] != '\0')
        from--;
    length = strnlen(from, (size_t)(end - from));
    if (*from != '/' || length >= size)
        return false;
    memcpy(path, from, length);
    path[length] = '\0';
    return true;
}

static bool knows_app_path(const struct image *image) {
    static const char name[] = "LTTNG_UST_APP_PATH";

    return memmem(image->bytes, image->size, name, sizeof name) != NULL;
}

/* -- The daemons --------------------------------------------------------------------- */

/* The modes of wait files. In /dev/shm they are stricter than LTTng's defaults: only the owner and
   root may write to these files, or truncate them while a process has them mapped. With
   LTTNG_UST_APP_PATH the daemon may run as any user. */
enum { ROOT_MODE = 0644, OWN_MODE = 0640, APP_PATH_MODE = 0666 };

/* Longer paths are cut, as LTTng cuts them. */
__attribute__((format(printf, 3, 4))) static void format(char *path, size_t size,
                                                         const char *format, ...) {
    va_list parts;

    va_start(parts, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is started above */
    (void)vsnprintf(path, size, format, parts);
    va_end(parts);
}

static struct dt_lttng_daemon *add(struct dt_lttng_daemons *daemons, const char *folder,
                                   const char *name, mode_t mode) {
    struct dt_lttng_daemon *daemon = &daemons->daemon[daemons->count++];

    daemon->socket.sun_family = AF_UNIX;
    format(daemon->socket.sun_path, sizeof daemon->socket.sun_path, "%s/%s", folder, name);
    daemon->mode = mode;
    return daemon;
}

static void add_root(struct dt_lttng_daemons *daemons, const char *folder, const char *name,
                     const char *number) {
    struct dt_lttng_daemon *daemon = add(daemons, folder, name, ROOT_MODE);

    format(daemon->wait_file, sizeof daemon->wait_file, "/dev/shm/lttng-ust-wait-%s", number);
}

static void add_own(struct dt_lttng_daemons *daemons, const char *home, const char *name,
                    const char *number) {
    char folder[PATH_MAX];
    struct dt_lttng_daemon *daemon;

    format(folder, sizeof folder, "%s/.lttng", home);
    daemon = add(daemons, folder, name, OWN_MODE);
    format(daemon->wait_file, sizeof daemon->wait_file, "/dev/shm/lttng-ust-wait-%s-%u", number,
           (unsigned)getuid());
    daemon->own = true;
}

/* False if the wait file cannot be created: LTTng then ignores the variable. */
static bool add_app_path(struct dt_lttng_daemons *daemons, const char *folder, const char *name,
                         const char *number) {
    struct dt_lttng_daemon *daemon = add(daemons, folder, name, APP_PATH_MODE);
    bool harmful;

    format(daemon->wait_file, sizeof daemon->wait_file, "%s/lttng-ust-wait-%s", folder, number);
    if (!dt_lttng_wait_file(daemon, &harmful) || harmful)
        return true;
    *daemons = (struct dt_lttng_daemons){.count = 0};
    return false;
}

bool dt_lttng_daemons_find(struct dt_lttng_daemons *daemons, const struct dt_lttng_env *env) {
    char socket[sizeof(struct sockaddr_un)], *name;
    const char *number;
    struct image image;
    bool found, has_app_path;

    *daemons = (struct dt_lttng_daemons){.count = 0};
    if (!map_library(&image))
        return false;
    found = find_socket(&image, socket, sizeof socket);
    has_app_path = *env->app_path && knows_app_path(&image);
    (void)munmap((void *)image.bytes, image.size);
    if (!found)
        return false;

    name = strrchr(socket, '/');
    *name++ = '\0';
    number = strrchr(name, '-') + 1;
    if (has_app_path && add_app_path(daemons, env->app_path, name, number))
        return true;
    add_root(daemons, socket, name, number);
    if (*env->home)
        add_own(daemons, env->home, name, number);
    return true;
}
