/*
 * LTTng: the probes as tracepoints of a provider that is loaded at run time.
 *
 *     dyntrace.so                           dyntrace_lttng.so (linked to liblttng-ust)
 *       table ──┬── nobody   until loaded       dt_lttng_provider
 *               └── served ───────────────────────> definition, state, fire   a probe
 *
 * Loading is asked for once and may end later: liblttng-ust is loaded only while no session
 * daemon hangs (dt_lttng_daemons.h). The load of the module waits for that a moment, an upgrade,
 * for which all schedulers stand still, does not.
 *
 * A process has one provider of a name: LTTng connects tracepoints and providers by name,
 * so of two, each event would be recorded by both. A provider that is loaded already,
 * by an earlier version of this library, goes on serving the probes that are still the
 * same; if it is somebody else's, ours is not loaded.
 */
#ifndef DT_LTTNG_H
#define DT_LTTNG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "dt_event.h"

/* What dyntrace_lttng.so exports, under the name dt_lttng_provider: an interface between
   versions. */
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

/* Loads the provider from there, unless it is loaded or being loaded; in a thread, for which
   it may wait up to DT_LTTNG_WAIT_MS. */
enum { DT_LTTNG_WAIT_MS = 50 };
void dt_lttng_load(const char *from, bool may_wait);

/* Whether this backend is not there, and why: the provider is not loaded, or no session daemon
   could reach it. */
bool dt_lttng_missing(char *why, size_t size);

/* The path of the library that provides the tracepoints, or NULL. */
const char *dt_lttng_library(void);

#endif
