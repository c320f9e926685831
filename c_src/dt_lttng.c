#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for dladdr */

#include "dt_lttng.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* -- Until a provider is loaded --------------------------------------------------- */

static const int disabled = 0;

static void fire_nothing(const union dt_event *event) {
    (void)event;
}

static const struct dt_lttng_table nobody = {
    .state =
        {
#define PROBE(name, when, fields...) &disabled,
#include "dt_probes.def"
        },
    .fire =
        {
#define PROBE(name, when, fields...) fire_nothing,
#include "dt_probes.def"
        },
};

_Atomic(const struct dt_lttng_table *) dt_lttng_table = &nobody;

static bool is_served(void) {
    return atomic_load_explicit(&dt_lttng_table, memory_order_acquire) != &nobody;
}

/* -- Finding a provider ------------------------------------------------------------- */

/*
 * These belong to the thread that loads, while `loading` is set; after that they are only
 * read.
 */
static char path[4096];
static char why[512] = "not loaded";
static struct dt_lttng_table served;
static char library[4096];

static const struct dt_lttng_provider *refuse(const char *reason, const char *detail) {
    (void)snprintf(why, sizeof why, "%s%.400s", reason, detail);
    return NULL;
}

struct names {
    char *name[512];
    unsigned count;
};

static int add_name(struct dl_phdr_info *info, size_t size, void *data) {
    struct names *names = data;

    (void)size;
    if (names->count < sizeof names->name / sizeof *names->name && info->dlpi_name[0])
        if ((names->name[names->count] = strdup(info->dlpi_name)))
            names->count++;
    return 0;
}

/* Whether that library, itself, defines an LTTng provider of our name. */
static bool provides(void *handle, const char *name) {
    /* as LTTng-UST 2.13 names it, and as the versions before */
    static const char *const symbols[] = {"lttng_ust_tracepoint_provider_org_erlang_dyntrace",
                                          "__tracepoint_provider_org_erlang_dyntrace"};

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(handle, symbols[i]);
        Dl_info info;

        if (symbol && dladdr(symbol, &info) && info.dli_fname && strcmp(info.dli_fname, name) == 0)
            return true;
    }
    return false;
}

/* A library of this process that provides our tracepoints already, kept open; and its name,
   in `library`. */
static void *find_loaded(void) {
    struct names names = {.count = 0};
    void *found = NULL;

    dl_iterate_phdr(add_name, &names);
    for (unsigned i = 0; i < names.count; i++) {
        void *handle = found ? NULL : dlopen(names.name[i], RTLD_LAZY | RTLD_NOLOAD);

        if (handle && provides(handle, names.name[i])) {
            found = handle;
            (void)snprintf(library, sizeof library, "%s", names.name[i]);
        } else if (handle) {
            dlclose(handle);
        }
        free(names.name[i]);
    }
    return found;
}

static const struct dt_lttng_provider *open_provider(void) {
    const struct dt_lttng_provider *provider;
    void *handle = find_loaded();

    if (handle) {
        provider = dlsym(handle, "dt_lttng_provider");
        return provider ? provider : refuse("org_erlang_dyntrace is provided by ", library);
    }
    if (access(path, F_OK) != 0)
        return refuse("not built: no LTTng-UST 2.13 or later when it was built "
                      "(Debian: liblttng-ust-dev)",
                      "");
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return refuse("", dlerror());
    (void)snprintf(library, sizeof library, "%s", path);
    provider = dlsym(handle, "dt_lttng_provider");
    return provider ? provider : refuse("not a provider of dyntrace: ", path);
}

/* -- Being served by it ------------------------------------------------------------- */

/* How many of our probes it serves; those that it does not know stay disabled. */
static unsigned serve(const struct dt_lttng_provider *provider) {
    unsigned count = 0;

    served = nobody;
    for (int probe = 0; probe < DT_PROBES; probe++)
        for (unsigned i = 0; i < provider->count; i++)
            if (*dt_lttng_definitions[probe] &&
                strcmp(provider->definition[i], dt_lttng_definitions[probe]) == 0) {
                served.state[probe] = provider->state[i];
                served.fire[probe] = provider->fire[i];
                count++;
            }
    return count;
}

/* -- Loading ------------------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool loading;

static void *load(void *unused) {
    const struct dt_lttng_provider *provider = open_provider();

    if (provider && serve(provider) == 0)
        provider = refuse("of another version: ", library);
    if (provider)
        atomic_store_explicit(&dt_lttng_table, &served, memory_order_release);
    pthread_mutex_lock(&mutex);
    loading = false;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void wait_a_little(void) {
    struct timespec deadline;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += DT_LTTNG_WAIT_MS * 1000000L;
    deadline.tv_sec += deadline.tv_nsec / 1000000000L;
    deadline.tv_nsec %= 1000000000L;
    while (loading && error == 0)
        error = pthread_cond_timedwait(&done, &mutex, &deadline);
}

/* Runs in load_nif, on a scheduler. The thread may outlive the module, but not this
   library, which is linked to stay (-z nodelete). */
void dt_lttng_load(const char *from) {
    pthread_t thread;

    pthread_mutex_lock(&mutex);
    if (!loading && !is_served()) {
        (void)snprintf(path, sizeof path, "%s", from);
        loading = pthread_create(&thread, NULL, load, NULL) == 0;
        if (loading)
            pthread_detach(thread);
        else
            (void)refuse("no thread to load it with", "");
    }
    wait_a_little();
    pthread_mutex_unlock(&mutex);
}

/* -- What there is ------------------------------------------------------------------- */

const char *dt_lttng_missing(void) {
    bool busy;

    if (is_served())
        return NULL;
    pthread_mutex_lock(&mutex);
    busy = loading;
    pthread_mutex_unlock(&mutex);
    return busy ? "being loaded: a session daemon does not answer" : why;
}

const char *dt_lttng_library(void) {
    return is_served() ? library : NULL;
}
