#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for dladdr */

#include "backends/lttng.h"

#include "backends/lttng_ask.h"
#include "backends/lttng_daemons.h"
#include "backends/lttng_threads.h"
#include "backends/lttng_wait_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* -- Until a provider is loaded --------------------------------------------------- */

static const int disabled = 0;

static void fire_nothing(const union dt_event *event) {
    (void)event;
}

static const struct dt_lttng_table no_provider = {
    .state = {[0 ... DT_PROBES - 1] = &disabled},
    .fire = {[0 ... DT_PROBES - 1] = fire_nothing},
};

_Atomic(const struct dt_lttng_table *) dt_lttng_table = &no_provider;

static bool is_connected(void) {
    return atomic_load_explicit(&dt_lttng_table, memory_order_acquire) != &no_provider;
}

/* -- State --------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char why[512] = "not loaded"; /* under the mutex */
static const char being_loaded[] = "being loaded";

/* Written by the loading thread while `loading` is set; read-only after that. */
static char path[4096];
static struct dt_lttng_env env;
static struct dt_lttng_daemons daemons;
static struct dt_lttng_table connected;
static char library[4096];
static char unreachable[512]; /* which daemon can't reach this process, and why; empty: none */
static int threads_started;   /* how many threads LTTng's library has started, at least */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list details;

    va_start(details, format);
    pthread_mutex_lock(&mutex);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is started above */
    (void)vsnprintf(why, sizeof why, format, details);
    pthread_mutex_unlock(&mutex);
    va_end(details);
}

bool dt_lttng_missing(char *text, size_t size) {
    int threads;

    if (!is_connected()) {
        pthread_mutex_lock(&mutex);
        (void)snprintf(text, size, "%s", why);
        pthread_mutex_unlock(&mutex);
        return true;
    }
    if (*unreachable) {
        (void)snprintf(text, size, "%s", unreachable);
        return true;
    }
    threads = dt_lttng_threads();
    if (threads < 0 || threads >= threads_started)
        return false;
    (void)snprintf(text, size,
                   "%d of %d threads of LTTng's library have ended; they come back when the node "
                   "is started again",
                   threads_started - threads, threads_started);
    return true;
}

const char *dt_lttng_library(void) {
    return is_connected() ? library : NULL;
}

/* -- Finding a provider ------------------------------------------------------------- */

static const struct dt_lttng_provider *refuse(const char *reason, const char *detail) {
    say("%s%.400s", reason, detail);
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

/* Whether this library itself, not one it depends on, defines an LTTng provider of our name. */
static bool provides(void *handle, const char *name) {
    /* from LTTng-UST 2.13 on, and before */
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

/* The handle of a loaded library that provides our tracepoints, or NULL; its name goes to
 * `library`. */
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

static bool is_built(void) {
    return access(path, F_OK) == 0;
}

static const struct dt_lttng_provider *find_or_open(void) {
    const struct dt_lttng_provider *provider;
    void *handle = find_loaded();

    if (handle) {
        provider = dlsym(handle, "dt_lttng_provider");
        return provider ? provider : refuse("org_erlang_dyntrace is provided by ", library);
    }
    if (!is_built())
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

/* Two versions of this library in one process may do this at the same time, so finding and loading
   a provider are one step under a file lock. Only processes of this user can open that file. Where
   it can't be opened, nothing is locked. */
static const struct dt_lttng_provider *open_provider(void) {
    int lock = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const struct dt_lttng_provider *provider;

    if (lock >= 0)
        (void)flock(lock, LOCK_EX);
    provider = find_or_open();
    if (lock >= 0)
        (void)close(lock);
    return provider;
}

/* -- Connecting to it --------------------------------------------------------------- */

/* Returns how many of our probes it has; the others stay disabled. */
static unsigned connect_probes(const struct dt_lttng_provider *provider) {
    unsigned count = 0;

    connected = no_provider;
    for (int probe = 0; probe < DT_PROBES; probe++)
        for (unsigned i = 0; i < provider->count; i++)
            if (*dt_lttng_definitions[probe] &&
                strcmp(provider->definition[i], dt_lttng_definitions[probe]) == 0) {
                connected.state[probe] = provider->state[i];
                connected.fire[probe] = provider->fire[i];
                count++;
            }
    return count;
}

/* -- Before LTTng's library is loaded -------------------------------------------------- */

static void waiting(const struct dt_lttng_daemon *daemon) {
    say("waiting: the session daemon at %s does not answer; LTTng is loaded when it does or has "
        "ended",
        daemon->socket.sun_path);
}

static bool is_lttng_loaded(void) {
    void *handle = dlopen("liblttng-ust.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (handle)
        (void)dlclose(handle);
    return handle != NULL;
}

/* Whether this is the daemon of the node's user: root's, or the user's own. */
static bool is_ours(unsigned i) {
    return i == (getuid() == 0 ? 0 : daemons.count - 1);
}

/* LTTng's library works without this daemon, but the daemon can't record. */
static void leave_out(const struct dt_lttng_daemon *daemon, const char *problem) {
    (void)snprintf(unreachable, sizeof unreachable,
                   "%s session daemon can record: LTTng can't use %.200s: %s",
                   daemon->own ? "only root's" : "only a user's own", daemon->wait_file, problem);
}

/* False if LTTng's library must not be loaded, since a file is harmful, or if it would have no file
   to wait on. Only then the reason is stored: otherwise the state stays `being loaded`. */
static bool make_wait_files(void) {
    const struct dt_lttng_daemon *worst = NULL;
    const char *worst_problem = NULL;
    bool harmful = false;

    for (unsigned i = 0; i < daemons.count; i++) {
        const struct dt_lttng_daemon *daemon = &daemons.daemon[i];
        bool this_harmful;
        const char *problem = dt_lttng_wait_file(daemon, &this_harmful);

        if (!problem) {
            threads_started++;
            continue;
        }
        if (is_ours(i))
            leave_out(daemon, problem);
        if (this_harmful || (!harmful && is_ours(i))) {
            worst = daemon;
            worst_problem = problem;
        }
        harmful = harmful || this_harmful;
    }
    if (!harmful && threads_started > 0)
        return true;
    if (worst)
        say("LTTng can't use %s: %s; load the module again when that is mended", worst->wait_file,
            worst_problem);
    return false;
}

/* Whether the provider may be loaded. If LTTng's library is loaded already, there is nothing to
   prepare. If it can't be found, loading the provider fails, and the dynamic linker's message says
   why. */
static bool prepare(void) {
    *unreachable = '\0';
    threads_started = 0;
    if (!is_built() || is_lttng_loaded() || !dt_lttng_daemons_find(&daemons, &env)) {
        threads_started = 1;
        return true;
    }
    dt_lttng_daemons_await(&daemons, waiting);
    say("%s", being_loaded);
    return make_wait_files();
}

/* -- Loading ------------------------------------------------------------------------ */

static pthread_cond_t done;
static bool loading; /* under the mutex */

static void *load(void *unused) {
    const struct dt_lttng_provider *provider = prepare() ? open_provider() : NULL;

    if (provider && connect_probes(provider) == 0)
        provider = refuse("of another version: ", library);
    if (provider)
        atomic_store_explicit(&dt_lttng_table, &connected, memory_order_release);
    pthread_mutex_lock(&mutex);
    loading = false;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* The thread blocks all signals: they are for the VM's threads. */
static bool start_thread(void) {
    sigset_t all, before;
    pthread_t thread;
    bool started;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, load, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        (void)pthread_detach(thread);
    return started;
}

/* Called with the mutex held. */
static void wait_a_little(void) {
    struct timespec deadline;
    int error = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += DT_LTTNG_WAIT_MS * 1000000L;
    deadline.tv_sec += deadline.tv_nsec / 1000000000L;
    deadline.tv_nsec %= 1000000000L;
    while (loading && error == 0)
        error = pthread_cond_timedwait(&done, &mutex, &deadline);
}

static void init_done(void) {
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

/* The thread may outlive the module, but not this library, which is linked to stay
   (-z nodelete). */
void dt_lttng_load(const char *from, bool may_wait) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, init_done);
    pthread_mutex_lock(&mutex);
    if (!loading && !is_connected()) {
        (void)snprintf(path, sizeof path, "%s", from);
        dt_lttng_env_read(&env);
        loading = start_thread();
        (void)snprintf(why, sizeof why, "%s", loading ? being_loaded : "no thread to load it with");
    }
    if (may_wait)
        wait_a_little();
    pthread_mutex_unlock(&mutex);
}
