#include "resources.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalogue/atoms.h"

enum { CONTENTS_MOST = 4096, PATH_SIZE = 1024 };

/* -- Open files ---------------------------------------------------------------------- */

#ifdef __linux__
/* The size of this folder is the number of descriptors. Before Linux 6.2 it is 0. */
static ERL_NIF_TERM count_open(ErlNifEnv *env) {
    struct stat folder;

    return stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0
               ? enif_make_int64(env, folder.st_size)
               : atom_undefined;
}
#else
static ERL_NIF_TERM count_open(DT_UNUSED ErlNifEnv *env) {
    return atom_undefined;
}
#endif

DT_NIF(dt_resources_open_files) {
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;

    return enif_make_tuple2(env, count_open(env),
                            is_limited ? enif_make_uint64(env, limit.rlim_cur) : atom_undefined);
}

/* -- Files of the kernel ------------------------------------------------------------- */

static const char *const places[] = {"/proc/self/", "/proc/meminfo", "/sys/fs/cgroup/"};

/* A file elsewhere may be on a disk, or be a FIFO, which would block the scheduler. */
static bool is_of_kernel(const char *path) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return !strstr(path, "/../");
    return false;
}

static bool get_path(ErlNifEnv *env, ERL_NIF_TERM term, char path[PATH_SIZE]) {
    ErlNifBinary binary;

    if (!enif_inspect_binary(env, term, &binary) || binary.size >= PATH_SIZE ||
        memchr(binary.data, 0, binary.size))
        return false;
    memcpy(path, binary.data, binary.size);
    path[binary.size] = '\0';
    return is_of_kernel(path);
}

DT_NIF(dt_resources_kernel_file) {
    char path[PATH_SIZE], contents[CONTENTS_MOST];
    ERL_NIF_TERM result;
    ssize_t size;
    int file;

    if (!get_path(env, argv[0], path))
        return atom_undefined;
    file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return atom_undefined;
    size = read(file, contents, sizeof contents);
    (void)close(file);
    if (size < 0)
        return atom_undefined;
    memcpy(enif_make_new_binary(env, size, &result), contents, size);
    return result;
}
