/*
 * LTTng: the probes as tracepoints of a provider that is loaded at run time.
 *
 *     dyntrace.so                           dyntrace_lttng.so (linked to liblttng-ust)
 *       table ──┬── no_provider   at first      dt_lttng_provider
 *               └── connected ────────────────────> definition, state, fire   per probe
 *
 * A thread loads the provider, and may have to wait: liblttng-ust is loaded only while no session
 * daemon hangs (backends/lttng_daemons.h). The load of the module waits up to DT_LTTNG_WAIT_MS for
 * that thread; an upgrade does not wait, since all schedulers are stopped meanwhile.
 *
 * LTTng connects tracepoints and providers by name. With two providers of one name in a process,
 * both would record each event. So where an earlier version of this library has loaded a provider,
 * that one is used for the probes that have not changed; where another library has, ours is not
 * loaded.
 */
#ifndef DT_BACKENDS_LTTNG_H
#define DT_BACKENDS_LTTNG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "catalogue/choose.h"
#include "catalogue/event.h"

/* Exported by dyntrace_lttng.so under the name dt_lttng_provider. Another version of this library
   may use it, so its layout does not change. */
struct dt_lttng_provider {
    unsigned count;
    const char *const *definition;
    const int *const *state; /* not 0: enabled in a session */
    void (*const *fire)(const union dt_event *event);
};

/* Each tracepoint's name and fields as text: equal text, equal struct. Empty: no
   tracepoint. Versions compare these texts, so their form does not change. */
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
    DT_CHOOSE(DT_LTTNG_DEFINITION, DT_LTTNG_NONE, backends)(name, fields)
static const char *const dt_lttng_definitions[DT_PROBES] = {
#include "catalogue/probes.def"
};
#undef ON_lttng

struct dt_lttng_table {
    const int *state[DT_PROBES];
    void (*fire[DT_PROBES])(const union dt_event *event);
};

extern _Atomic(const struct dt_lttng_table *) dt_lttng_table;

static inline bool dt_lttng_is_enabled(enum dt_probe probe) {
    const struct dt_lttng_table *table =
        atomic_load_explicit(&dt_lttng_table, memory_order_acquire);

    return *(const volatile int *)table->state[probe] != 0;
}

/* For a probe that is enabled. */
static inline void dt_lttng_fire(enum dt_probe probe, const union dt_event *event) {
    atomic_load_explicit(&dt_lttng_table, memory_order_acquire)->fire[probe](event);
}

/* Starts a thread that loads the provider from this path, unless it is loaded or being loaded. With
   `may_wait` it waits for the thread, up to DT_LTTNG_WAIT_MS. */
enum { DT_LTTNG_WAIT_MS = 50 };
void dt_lttng_load(const char *from, bool may_wait);

/* Whether this backend is not available, and why: the provider is not loaded, or no session daemon
   can reach it. */
bool dt_lttng_missing(char *why, size_t size);

/* The path of the library that provides the tracepoints, or NULL. */
const char *dt_lttng_library(void);

#endif
