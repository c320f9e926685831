/*
 * Packets of a Perfetto trace: encodes them and writes them to a file in sequence.
 *
 *     uint64_t name = dt_name(packets, "running");
 *     dt_event_begin(packets, DT_EVENT_BEGIN, track, time, DT_CATEGORY_state);
 *     dt_event_name(packets, name);
 *     dt_arg_text(packets, DT_ARG_pid, "<0.90.0>");
 *     dt_event_end(packets);
 *
 * Names that repeat are interned: the file has the text once, then its number. Intern names before
 * dt_event_begin, because a new name is a separate packet. When there are too many names, writer
 * and reader forget all of them; names are then written again, with higher numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include "perfetto/fields.h"

/* Texts of arguments are cut here, at a character boundary. */
enum { DT_ARG_MAX = 1024 };

/* The categories of events. */
#define DT_PERFETTO_CATEGORIES(X)                                                                  \
    X(schedule)                                                                                    \
    X(state)                                                                                       \
    X(collect)                                                                                     \
    X(call)                                                                                        \
    X(message)                                                                                     \
    X(request)                                                                                     \
    X(server_call)                                                                                 \
    X(span)                                                                                        \
    X(spawn)                                                                                       \
    X(exit)                                                                                        \
    X(event)                                                                                       \
    X(mark)                                                                                        \
    X(log)                                                                                         \
    X(vm)                                                                                          \
    X(lost)

/* Names of arguments that are interned, because the sink writes them often. */
#define DT_PERFETTO_ARGS(X)                                                                        \
    X(pid)                                                                                         \
    X(in)                                                                                          \
    X(out)                                                                                         \
    X(scheduler)                                                                                   \
    X(inferred)                                                                                    \
    X(open)                                                                                        \
    X(major)                                                                                       \
    X(reclaimed_words)                                                                             \
    X(heap_words)                                                                                  \
    X(old_heap_words)                                                                              \
    X(arguments)                                                                                   \
    X(left)                                                                                        \
    X(class)                                                                                       \
    X(value)                                                                                       \
    X(own_ns)                                                                                      \
    X(waited_ns)                                                                                   \
    X(from)                                                                                        \
    X(to)                                                                                          \
    X(text)                                                                                        \
    X(matched)                                                                                     \
    X(measurements)                                                                                \
    X(metadata)                                                                                    \
    X(label)                                                                                       \
    X(timer)                                                                                       \
    X(dead)                                                                                        \
    X(transit_ns)                                                                                  \
    X(caller)                                                                                      \
    X(server)                                                                                      \
    X(request)                                                                                     \
    X(reply)                                                                                       \
    X(outcome)                                                                                     \
    X(delivered_ns)                                                                                \
    X(served_ns)                                                                                   \
    X(parent)                                                                                      \
    X(child)                                                                                       \
    X(reason)                                                                                      \
    X(linked)                                                                                      \
    X(stream)                                                                                      \
    X(count)                                                                                       \
    X(running_ns)                                                                                  \
    X(collecting_ns)                                                                               \
    X(runnable_ns)                                                                                 \
    X(waiting_ns)                                                                                  \
    X(process)                                                                                     \
    X(other)                                                                                       \
    X(id)

enum dt_category {
    DT_CATEGORY_NONE,
#define X(name) DT_CATEGORY_##name,
    DT_PERFETTO_CATEGORIES(X)
#undef X
        DT_CATEGORIES
};

enum dt_arg {
    DT_ARG_NONE,
#define X(name) DT_ARG_##name,
    DT_PERFETTO_ARGS(X)
#undef X
        DT_ARGS
};

struct dt_packets;

struct dt_packets *dt_packets_open(const char *path, GError **error);
const GError *dt_packets_failed(const struct dt_packets *packets);
/* Writes buffered packets, and closes the file. */
bool dt_packets_close(struct dt_packets *packets, GError **error);
void dt_packets_free(struct dt_packets *packets);

/* Declares to the reader that the times are calendar times. */
void dt_packets_clock(struct dt_packets *packets, int64_t time);

/* -- Names --------------------------------------------------------------------------- */

/* A name with its cached number. Initialize it with zeros. */
struct dt_name {
    uint64_t number;
    unsigned generation;
};

uint64_t dt_name(struct dt_packets *packets, const char *text);
uint64_t dt_name_cached(struct dt_packets *packets, struct dt_name *name, const char *text);

/* -- Tracks -------------------------------------------------------------------------- */

struct dt_track {
    uint64_t uuid, parent; /* parent 0: none */
    const char *name;
    const char *description; /* NULL or "": none */
    int64_t rank;            /* among its siblings, lowest first */
    bool is_ordered;         /* its children are ordered by rank */
    bool is_alone;           /* it is not merged with siblings of the same name */
    bool is_process;
    int32_t pid;
    bool is_counter;
    const char *unit; /* of a counter; "bytes" or any text */
};
void dt_track_write(struct dt_packets *packets, const struct dt_track *track);

/* -- Events -------------------------------------------------------------------------- */

enum dt_event_type {
    DT_EVENT_BEGIN = PF_Type_TYPE_SLICE_BEGIN,
    DT_EVENT_END = PF_Type_TYPE_SLICE_END,
    DT_EVENT_INSTANT = PF_Type_TYPE_INSTANT,
    DT_EVENT_COUNTER = PF_Type_TYPE_COUNTER,
};

void dt_event_begin(struct dt_packets *packets, enum dt_event_type type, uint64_t track,
                    int64_t time, enum dt_category category);
void dt_event_name(struct dt_packets *packets, uint64_t name);
/* A name that is not interned, because it rarely repeats. */
void dt_event_text(struct dt_packets *packets, const char *before, const char *text);
void dt_event_value(struct dt_packets *packets, int64_t value);
void dt_event_flow(struct dt_packets *packets, uint64_t flow);
void dt_event_flow_end(struct dt_packets *packets, uint64_t flow);
void dt_event_correlation(struct dt_packets *packets, uint64_t id);
void dt_event_end(struct dt_packets *packets);

/* Arguments. An empty text writes nothing. */
void dt_arg_text(struct dt_packets *packets, enum dt_arg name, const char *text);
void dt_arg_int(struct dt_packets *packets, enum dt_arg name, int64_t value);
void dt_arg_true(struct dt_packets *packets, enum dt_arg name);
/* Arguments with any name. */
void dt_arg_named_text(struct dt_packets *packets, const char *name, const char *text);
void dt_arg_named_int(struct dt_packets *packets, const char *name, int64_t value);
