/*
 * LTTng: the probes as tracepoints of a provider that is loaded at run time.
 *
 *     dyntrace.so                           dyntrace_lttng.so (linked to liblttng-ust)
 *       table ──┬── nobody   until loaded       dt_lttng_provider
 *               └── served ───────────────────────> definition, state, fire   a probe
 *
 * A thread loads the provider, and may have to wait: liblttng-ust is loaded only while no session
 * daemon hangs (dt_lttng_daemons.h). The load of the module waits up to DT_LTTNG_WAIT_MS for that
 * thread; an upgrade does not wait, since all schedulers are stopped meanwhile.
 *
 * LTTng connects tracepoints and providers by name. With two providers of one name in a process,
 * both would record each event. So where an earlier version of this library has loaded a provider,
 * that one is used for the probes that have not changed; where another library has, ours is not
 * loaded.
 */
#ifndef DT_LTTNG_H
#define DT_LTTNG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "dt_event.h"

/* Exported by dyntrace_lttng.so under the name dt_lttng_provider. Another version of this library
   may use it, so its layout does not change. */
struct dt_lttng_provider {
    unsigned count;
    const char *const *definition;
    const int *const *state; /* not 0: enabled in a session */
    void (*const *fire)(const union dt_event *event);
};

/* Each tracepoint's name and fields as text: equal text, equal struct. Empty: no
   tracepoint. */
#define STR(name, ...) " str " #name
#define TEXT(name, ...) " str " #name
#define STRING(name, ...) " str " #name
#define INT(name, ...) " s32 " #name
#define LONG(name, ...) " s64 " #name
#define UINT(name, ...) " u32 " #name
#define ULONG(name, ...) " u64 " #name
#define PROBE(name, when, fields...) #name fields,
#define ERLANG_PROBE(name, when, differs, fields...) "",
static const char *const dt_lttng_definitions[DT_PROBES] = {
#include "dt_probes.def"
};

struct dt_lttng_table {
    const int *state[DT_PROBES];
    void (*fire[DT_PROBES])(const union dt_event *event);
};

extern _Atomic(const struct dt_lttng_table *) dt_lttng_table;

static inline bool dt_lttng_listening(enum dt_probe probe) {
    const struct dt_lttng_table *table =
        atomic_load_explicit(&dt_lttng_table, memory_order_acquire);

    return *(const volatile int *)table->state[probe] != 0;
}

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
