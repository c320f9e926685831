#include "page/marks.h"

#include <inttypes.h>

#include "shared/probe_fields.h"

/* Events that are shown as marks: a name, and a format for the text. */
#define MARKS(MARK)                                                                                \
    MARK(user_mark, "mark", "%s %" PRId64 " %s", e->name, e->value, e->text)                       \
    MARK(log, "log", "%s: %s", e->level, e->text)                                                  \
    MARK(node_up, "node up", "%s", e->node)                                                        \
    MARK(node_down, "node down", "%s: %s", e->node, e->reason)                                     \
    MARK(vm_long_gc, "long collection", "%" PRIu64 " ms", e->duration)                             \
    MARK(vm_long_schedule, "long schedule", "%" PRIu64 " ms, from %s to %s", e->duration,          \
         e->started, e->stopped)                                                                   \
    MARK(vm_large_heap, "large heap", "%" PRIu64 " words", e->heap)                                \
    MARK(vm_busy_port, "busy port", "%s", e->port)                                                 \
    MARK(vm_busy_dist_port, "busy connection", "%s", e->node)                                      \
    MARK(vm_long_message_queue, "message queue", "%s", e->type)                                    \
    MARK(seq_trace_print, "seq_trace", "%s", e->message)                                           \
    MARK(user_trace_s1, "trace", "%s", e->message)                                                 \
    MARK(user_trace_i4s4, "trace", "%s", e->user_tag)                                              \
    MARK(user_trace_n, "trace", "%s", e->user_tag)

const char *dt_page_mark(const struct dt_instant *instant, GString *text) {
    const struct dt_recorded *event = instant->event;

    if (instant->is_general) {
        dt_fields_text(text, event);
        return dt_probe_names[event->probe];
    }
    switch (event->probe) {
#define MARK(probe, name, ...)                                                                     \
    case DT_##probe: {                                                                             \
        const struct dt_##probe *e = &event->fields.probe;                                         \
                                                                                                   \
        g_string_printf(text, __VA_ARGS__);                                                        \
        return name;                                                                               \
    }
        MARKS(MARK)
#undef MARK
    default:
        return NULL;
    }
}
