#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for RTLD_NOLOAD */

#include "backends/lttng/lttng.h"

#include "backends/lttng/await_daemons.h"
#include "backends/lttng/daemons.h"
#include "backends/lttng/find_provider.h"
#include "backends/lttng/threads.h"
#include "backends/lttng/wait_file.h"

#include <dlfcn.h>
#include <fcntl.h>
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

static void fire_nothing(DT_UNUSED const union dt_event *event) {
}

/* It does not list consumers: no probe is enabled. */
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
static const char being_loaded[] = "being loaded";

static char folder[4096]; /* of our libraries; written before the loading thread starts */

/* The providers. Each has a separate library: a VM that was built with LTTng provides the second
   one itself. */
static struct source {
    const char *provider;
    const char *file;
    char why[512];                    /* under the mutex: why it is missing; empty if it is not */
    char library[sizeof folder + 32]; /* the object that provides it */
} sources[DT_LTTNG_PROVIDERS] = {
#define LIBRARY(provider, file) {#provider, file, "not loaded", ""},
    DT_LTTNG_LIBRARIES(LIBRARY)
#undef LIBRARY
};

/* Written by the loading thread while `loading` is set; read-only after that. */
static struct dt_lttng_env env;
static struct dt_lttng_daemons daemons;
static struct dt_lttng_table connected;
static char unreachable[512]; /* which daemon cannot reach this process, and why; empty: none */
static int threads_started;   /* the minimum number of threads that LTTng's library has started */

/* Sets the state of one provider. */
__attribute__((format(printf, 2, 3))) static void say_of(struct source *source, const char *format,
                                                         ...) {
    va_list details;

    va_start(details, format);
    pthread_mutex_lock(&mutex);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is started above */
    (void)vsnprintf(source->why, sizeof source->why, format, details);
    pthread_mutex_unlock(&mutex);
    va_end(details);
}

/* Sets the state of all providers. */
#define SAY(...)                                                                                   \
    do                                                                                             \
        for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++)                                          \
            say_of(&sources[i], __VA_ARGS__);                                                      \
    while (0)

bool dt_lttng_provider_missing(unsigned i, char *text, size_t size) {
    pthread_mutex_lock(&mutex);
    (void)snprintf(text, size, "%s", sources[i].why);
    pthread_mutex_unlock(&mutex);
    return *text != '\0';
}

const char *dt_lttng_provider_name(unsigned i) {
    return sources[i].provider;
}

bool dt_lttng_missing(char *text, size_t size) {
    int threads;

    if (dt_lttng_provider_missing(0, text, size))
        return true;
    if (*unreachable) {
        (void)snprintf(text, size, "%s", unreachable);
        return true;
    }
    threads = dt_lttng_threads();
    if (threads < 0 || threads >= threads_started)
        return false;
    (void)snprintf(text, size,
                   "%d of %d threads of LTTng's library have ended; restart the node to start them "
                   "again",
                   threads_started - threads, threads_started);
    return true;
}

const char *dt_lttng_library(void) {
    char why[sizeof sources->why];

    return dt_lttng_provider_missing(0, why, sizeof why) ? NULL : sources[0].library;
}

/* -- Finding and opening a provider -------------------------------------------------- */

static void *refuse(struct source *source, const char *reason, const char *detail) {
    say_of(source, "%s%.400s", reason, detail);
    return NULL;
}

static void path_of(const struct source *source, char *path, size_t size) {
    (void)snprintf(path, size, "%s/%s", folder, source->file);
}

static bool is_built(const struct source *source) {
    char path[sizeof source->library];

    path_of(source, path, sizeof path);
    return access(path, F_OK) == 0;
}

/* Held while a library is opened, and from the exit of the VM on. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void *open_library(const char *path) {
    void *library;

    pthread_mutex_lock(&opening);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&opening);
    return library;
}

/* When the VM exits, destructors of LTTng's library take LTTng's lock and wait for the dynamic
   linker's lock, while a thread that opens a provider has the linker's lock and waits for LTTng's.
   So the exit first waits for that thread, and no other provider is opened. */
static void at_exit(void) {
    struct timespec deadline;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DT_LTTNG_EXIT_WAIT_S;
    (void)pthread_mutex_timedlock(&opening, &deadline);
}

/* Returns the handle of a dyntrace library. */
static void *find_or_open(struct source *source) {
    char by[128];
    void *library;

    (void)snprintf(by, sizeof by, "%s is provided by ", source->provider);
    if (dt_lttng_find(source->provider, source->library, sizeof source->library, &library))
        return library ? library : refuse(source, by, source->library);
    if (!is_built(source))
        return refuse(source,
                      "not built: LTTng-UST 2.13 or later was missing at build time "
                      "(Debian: liblttng-ust-dev)",
                      "");
    path_of(source, source->library, sizeof source->library);
    library = open_library(source->library);
    if (!library)
        return refuse(source, "", dlerror());
    return dlsym(library, "dt_lttng_provider")
               ? library
               : refuse(source, "not a provider of dyntrace: ", source->library);
}

/* -- Connecting to it --------------------------------------------------------------- */

/* Returns how many of our probes it has; the others remain disabled. */
static unsigned connect_probes(const struct dt_lttng_provider *provider) {
    unsigned count = 0;

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

static bool connect_to(struct source *source) {
    void *library = find_or_open(source);
    dt_lttng_list *consumers;

    if (!library)
        return false;
    consumers = (dt_lttng_list *)dlsym(library, "dt_lttng_consumers");
    if (consumers && connect_probes(dlsym(library, "dt_lttng_provider")) > 0) {
        connected.consumers = consumers;
        return true;
    }
    (void)refuse(source, "of another version: ", source->library);
    return false;
}

/* Two versions of this library in one process may do this at the same time, so a file lock makes
   finding and loading the providers one step. Only processes of this user can open that file. If it
   cannot be opened, nothing is locked. Returns the number of providers that exist; `has[i]`:
   whether provider i does. */
static unsigned connect_all(bool has[DT_LTTNG_PROVIDERS]) {
    int lock = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    unsigned count = 0;

    if (lock >= 0)
        (void)flock(lock, LOCK_EX);
    connected = no_provider;
    for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++)
        count += has[i] = connect_to(&sources[i]);
    if (lock >= 0)
        (void)close(lock);
    return count;
}

/* -- Before LTTng's library is loaded -------------------------------------------------- */

static void waiting(const struct dt_lttng_daemon *daemon) {
    SAY("waiting: the session daemon at %s does not answer; LTTng is loaded when it answers or "
        "ends",
        daemon->socket.sun_path);
}

static bool is_lttng_loaded(void) {
    void *handle = dlopen("liblttng-ust.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (handle)
        (void)dlclose(handle);
    return handle != NULL;
}

/* Whether this is the daemon of the node's user, who may be root. */
static bool is_ours(unsigned i) {
    return i == (getuid() == 0 ? 0 : daemons.count - 1);
}

/* LTTng's library works without this daemon, but the daemon cannot record. */
static void leave_out(const struct dt_lttng_daemon *daemon, const char *problem) {
    (void)snprintf(unreachable, sizeof unreachable,
                   "%s session daemon can record: LTTng can't use %.200s: %s",
                   daemon->own ? "only root's" : "only a user's own", daemon->wait_file, problem);
}

/* Returns false if LTTng's library must not be loaded because a file is harmful, or if it would
   have no wait file. Only then the reason is stored: otherwise the state remains `being loaded`. */
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
        SAY("LTTng can't use %s: %s; fix that, then reload the module", worst->wait_file,
            worst_problem);
    return false;
}

/* Whether there is a library to load: a provider that was built and that no object provides yet. */
static bool has_to_load(void) {
    for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++) {
        char object[sizeof sources[i].library];
        void *library;

        if (is_built(&sources[i]) &&
            !dt_lttng_find(sources[i].provider, object, sizeof object, &library))
            return true;
    }
    return false;
}

/* Whether the providers may be loaded. If LTTng's library is already loaded, its files exist. But a
   daemon that hangs would still delay the load: LTTng reports to it each new tracepoint that a
   session enables, and waits for its answer. If LTTng's library cannot be found, loading the
   provider fails, and the dynamic linker's message says why. */
static bool prepare(void) {
    bool had_lttng = is_lttng_loaded();

    *unreachable = '\0';
    threads_started = 0;
    if (!has_to_load() || !dt_lttng_daemons_find(&daemons, &env)) {
        threads_started = 1;
        return true;
    }
    dt_lttng_daemons_await(&daemons, waiting);
    SAY("%s", being_loaded);
    threads_started = had_lttng;
    return had_lttng || make_wait_files();
}

/* -- Loading ------------------------------------------------------------------------ */

static pthread_cond_t done;
static bool loading; /* under the mutex */

static void *load(void *unused) {
    bool has[DT_LTTNG_PROVIDERS] = {false};

    if (prepare() && connect_all(has) > 0)
        atomic_store_explicit(&dt_lttng_table, &connected, memory_order_release);
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++)
        if (has[i])
            *sources[i].why = '\0';
    loading = false;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* The thread blocks all signals, so that the VM's threads get them. */
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

static void init(void) {
    pthread_condattr_t monotonic;

    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    /* Runs before the destructors of libraries. */
    (void)atexit(at_exit);
}

/* The thread may outlive the module, but not this library, which is never unloaded
   (-z nodelete). */
void dt_lttng_load(const char *from, bool may_wait) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, init);
    pthread_mutex_lock(&mutex);
    if (!loading && !is_connected()) {
        (void)snprintf(folder, sizeof folder, "%s", from);
        dt_lttng_env_read(&env);
        loading = start_thread();
        for (unsigned i = 0; i < DT_LTTNG_PROVIDERS; i++)
            (void)snprintf(sources[i].why, sizeof sources[i].why, "%s",
                           loading ? being_loaded : "cannot start a thread to load it");
    }
    if (may_wait)
        wait_a_little();
    pthread_mutex_unlock(&mutex);
}
