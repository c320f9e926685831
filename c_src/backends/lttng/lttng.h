/*
 * LTTng: the probes as tracepoints of providers that are loaded at run time.
 *
 *     dyntrace.so                           dyntrace_lttng*.so (linked to liblttng-ust)
 *       table ──┬── no_provider   at first      dt_lttng_provider
 *               └── connected ────────────────────> definition, state, fire   per probe
 *
 * A thread loads the providers, and may have to wait: liblttng-ust is loaded only while no session
 * daemon hangs (backends/lttng/daemons.h). The load of the module waits up to DT_LTTNG_WAIT_MS for
 * that thread; an upgrade does not wait, because all schedulers are stopped meanwhile.
 *
 * LTTng connects tracepoints and providers by name. If a process had two providers of one name,
 * both would record each event. So if another build of this library has loaded a provider before,
 * that one is used for the probes that have not changed; if another library or the VM itself
 * provides it, ours is not loaded. Each provider is a separate library, because others may provide
 * only one of them.
 *
 * With DT_NO_LTTNG, for systems other than Linux, there is no such table and no probe is enabled.
 */
#ifndef DT_BACKENDS_LTTNG_H
#define DT_BACKENDS_LTTNG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "catalogue/choose.h"
#include "catalogue/event.h"
#include "catalogue/unused.h"

/* The providers, each with its library. The first one represents the backend. */
#define DT_LTTNG_LIBRARIES(LIBRARY)                                                                \
    LIBRARY(org_erlang_dyntrace, "dyntrace_lttng.so")                                              \
    LIBRARY(org_erlang_otp, "dyntrace_lttng_otp.so")
#define DT_LTTNG_COUNT(...) +1
enum { DT_LTTNG_PROVIDERS = 0 DT_LTTNG_LIBRARIES(DT_LTTNG_COUNT) };

#ifdef DT_NO_LTTNG

static inline bool dt_lttng_is_enabled(DT_UNUSED enum dt_probe probe) {
    return false;
}

static inline void dt_lttng_fire(DT_UNUSED enum dt_probe probe,
                                 DT_UNUSED const union dt_event *event) {
}

static inline size_t dt_lttng_consumers_of(DT_UNUSED enum dt_probe probe, DT_UNUSED uint64_t *ids,
                                           DT_UNUSED size_t most) {
    return 0;
}

static inline void dt_lttng_load(DT_UNUSED const char *from, DT_UNUSED bool may_wait) {
}

static inline bool dt_lttng_missing(char *why, size_t size) {
    (void)snprintf(why, size, "only on Linux");
    return true;
}

static inline const char *dt_lttng_library(void) {
    return NULL;
}

static inline bool dt_lttng_provider_missing(DT_UNUSED unsigned i, char *why, size_t size) {
    return dt_lttng_missing(why, size);
}

static inline const char *dt_lttng_provider_name(unsigned i) {
#define DT_LTTNG_NAME(name, library) #name,
    static const char *const names[] = {DT_LTTNG_LIBRARIES(DT_LTTNG_NAME)};

    return names[i];
}

#else

/* Exported by these libraries under the name dt_lttng_provider. Another build of this library may
   use it, so its layout must not change. */
struct dt_lttng_provider {
    unsigned count;
    const char *const *definition;
    const int *const *state; /* not 0: enabled in a session */
    void (*const *fire)(const union dt_event *event);
};

/* Also exported: the consumers of the tracepoint with this state, as numbers that differ between
   sessions. Returns how many it has written, at most `most`. */
typedef size_t dt_lttng_list(const int *state, uint64_t *ids, size_t most);
dt_lttng_list dt_lttng_consumers;

/* Each tracepoint's name and fields as text: equal texts mean equal structs. Empty if the probe has
   no tracepoint or, in a provider's library, one of another provider. Builds compare these texts,
   so their format must not change. */
#ifndef DT_LTTNG_CHOOSE
#define DT_LTTNG_CHOOSE(with, without, provider, ...) DT_CHOOSE(with, without, __VA_ARGS__)
#endif
#define ON_lttng , 1,
#define DT_LTTNG_s_int32 " s32 "
#define DT_LTTNG_s_int64 " s64 "
#define DT_LTTNG_s_uint32 " u32 "
#define DT_LTTNG_s_uint64 " u64 "
#define DT_LTTNG_DEFINITION(name, fields...) #name fields,
#define DT_LTTNG_NONE(name, ...) "",
#define STR(name, ...) " str " #name
#define NUMBER(type, name, ...) DT_LTTNG_s_##type #name
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    DT_LTTNG_CHOOSE(DT_LTTNG_DEFINITION, DT_LTTNG_NONE, provider, backends)(name, fields)
static const char *const dt_lttng_definitions[DT_PROBES] = {
#include "catalogue/probes.def"
};
#undef ON_lttng

struct dt_lttng_table {
    const int *state[DT_PROBES];
    void (*fire[DT_PROBES])(const union dt_event *event);
    dt_lttng_list *consumers;
};

extern _Atomic(const struct dt_lttng_table *) dt_lttng_table;

static inline bool dt_lttng_is_enabled(enum dt_probe probe) {
    const struct dt_lttng_table *table =
        atomic_load_explicit(&dt_lttng_table, memory_order_acquire);

    return *(const volatile int *)table->state[probe] != 0;
}

/* The probe must be enabled. */
static inline void dt_lttng_fire(enum dt_probe probe, const union dt_event *event) {
    atomic_load_explicit(&dt_lttng_table, memory_order_acquire)->fire[probe](event);
}

/* The consumers of a probe. The state of a probe without a tracepoint is always 0, and is not part
   of an LTTng structure. */
static inline size_t dt_lttng_consumers_of(enum dt_probe probe, uint64_t *ids, size_t most) {
    const struct dt_lttng_table *table =
        atomic_load_explicit(&dt_lttng_table, memory_order_acquire);
    const int *state = table->state[probe];

    return *(const volatile int *)state == 0 ? 0 : table->consumers(state, ids, most);
}

/* Starts a thread that loads the providers from this folder, unless one is loaded or being loaded.
   With `may_wait` it waits up to DT_LTTNG_WAIT_MS for the thread. If the VM exits while a provider
   is being opened, the exit waits up to DT_LTTNG_EXIT_WAIT_S for that. */
enum { DT_LTTNG_WAIT_MS = 50, DT_LTTNG_EXIT_WAIT_S = 2 };
void dt_lttng_load(const char *from, bool may_wait);

/* Whether this backend is unavailable, and why: the first provider is not loaded, or no session
   daemon can reach it. */
bool dt_lttng_missing(char *why, size_t size);

/* The same for provider `i`, which another object may provide. */
bool dt_lttng_provider_missing(unsigned i, char *why, size_t size);
const char *dt_lttng_provider_name(unsigned i);

/* The path of the library that provides the tracepoints of the first provider, or NULL. */
const char *dt_lttng_library(void);

#endif
#endif
