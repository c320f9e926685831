#include "dt_lttng.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* -- Until a provider is loaded --------------------------------------------------- */

static const int disabled = 0;

static void fire_nothing(const union dt_event *event) {
    (void)event;
}

static const struct dt_lttng_provider nobody = {
    .catalogue = "",
    .state =
        {
#define PROBE(name, when, fields) &disabled,
#include "dt_probes.def"
        },
    .fire =
        {
#define PROBE(name, when, fields) fire_nothing,
#include "dt_probes.def"
        },
};

_Atomic(const struct dt_lttng_provider *) dt_lttng_current = &nobody;

/* -- Loading ---------------------------------------------------------------------- */

/*
 * One attempt at a time. `why` belongs to the thread that loads while `loading` is set,
 * and is only read when it is not.
 */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool loading;
static char path[4096];
static char why[512] = "not loaded";

static const struct dt_lttng_provider *open_provider(void) {
    const struct dt_lttng_provider *provider;
    void *library;

    if (access(path, F_OK) != 0) {
        (void)snprintf(why, sizeof why, "%s",
                       "not built: no LTTng-UST 2.13 or later when it was built "
                       "(Debian: liblttng-ust-dev)");
        return NULL;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)snprintf(why, sizeof why, "%s", dlerror());
        return NULL;
    }
    provider = dlsym(library, "dt_lttng_provider");
    if (!provider || strcmp(provider->catalogue, dt_catalogue) != 0) {
        (void)snprintf(why, sizeof why, "%.400s is not the provider of this build", path);
        return NULL;
    }
    return provider;
}

static void *load(void *unused) {
    const struct dt_lttng_provider *provider = open_provider();

    if (provider)
        atomic_store_explicit(&dt_lttng_current, provider, memory_order_release);
    pthread_mutex_lock(&mutex);
    loading = false;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static bool is_loaded(void) {
    return atomic_load_explicit(&dt_lttng_current, memory_order_acquire) != &nobody;
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
    if (!loading && !is_loaded()) {
        (void)snprintf(path, sizeof path, "%s", from);
        loading = pthread_create(&thread, NULL, load, NULL) == 0;
        if (loading)
            pthread_detach(thread);
        else
            (void)snprintf(why, sizeof why, "%s", "no thread to load it with");
    }
    wait_a_little();
    pthread_mutex_unlock(&mutex);
}

void dt_lttng_inherit(const struct dt_lttng_provider *provider) {
    if (!is_loaded() && strcmp(provider->catalogue, dt_catalogue) == 0)
        atomic_store_explicit(&dt_lttng_current, provider, memory_order_release);
}

const char *dt_lttng_missing(void) {
    bool busy;

    if (is_loaded())
        return NULL;
    pthread_mutex_lock(&mutex);
    busy = loading;
    pthread_mutex_unlock(&mutex);
    return busy ? "being loaded: a session daemon does not answer" : why;
}
