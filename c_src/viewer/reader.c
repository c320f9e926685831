/*
 * Each event class of a trace is mapped once to a probe of the catalogue: which member of its
 * payload and contexts goes where. A map holds its class, so that no other class gets its address.
 */
#include "viewer/reader.h"

#include <stddef.h>
#include <string.h>

/* -- The catalogue ---------------------------------------------------------------- */

enum type { TYPE_TEXT, TYPE_PROGRAM_TEXT, TYPE_int32, TYPE_uint32, TYPE_int64, TYPE_uint64 };

/* A field of a probe's struct. */
struct slot {
    const char *name;
    const char *alias; /* another name in traces, or NULL */
    enum type type;
    unsigned offset;
};

#define SLOT(name, alias, type) {#name, alias, type, (unsigned)offsetof(here, name)},
#define STR(name, ...) SLOT(name, NULL, TYPE_TEXT)
#define STR_AS(name, lttng, ...) SLOT(name, #lttng, TYPE_TEXT)
#define STRING(name, ...) SLOT(name, NULL, TYPE_PROGRAM_TEXT)
#define NUMBER(type, name, ...) SLOT(name, NULL, TYPE_##type)
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    static const struct slot *slots_of_##name(void) {                                              \
        typedef struct dt_##name here __attribute__((unused));                                     \
        static const struct slot slots[] = {fields{NULL, NULL, TYPE_TEXT, 0}};                     \
                                                                                                   \
        return slots;                                                                              \
    }
#include "catalogue/probes.def"

static const struct {
    const char *name; /* as tracers list it */
    const struct slot *(*slots)(void);
} probes[DT_PROBES] = {
#define PROBE(name, provider, ...) {#provider ":" #name, slots_of_##name},
#include "catalogue/probes.def"
};

/* -- What is known of classes and streams ------------------------------------------- */

enum { MAX_MEMBERS = 16 };

/* Times up to the year 2116: two of them have a difference. */
static const int64_t latest = INT64_C(1) << 62;

/* A member of an event's payload. */
struct member {
    uint64_t index;
    enum type type;
    bool is_signed;
    unsigned offset;
};

enum scope { SCOPE_NONE, SCOPE_COMMON, SCOPE_SPECIFIC };

/* A member of one of an event's contexts. */
struct context {
    enum scope scope;
    uint64_t index;
    bool is_text, is_signed;
};

struct class_map {
    const bt_event_class *class;
    bool is_ours; /* of a probe in the catalogue, with fields of the right types */
    enum dt_probe probe;
    uint64_t has;
    unsigned members;
    struct member member[MAX_MEMBERS];
    union dt_event empty; /* what an event has whose trace has no fields */
    struct context vpid, vtid, procname, hostname;
};

struct stream_info {
    const bt_stream *stream;
    uint64_t trace;
    const struct dt_clock *clock;
    int64_t cpu, vpid;
    char *hostname, *procname;
    char *name;
    int64_t last; /* time of the packet's last event, or of its begin */
    bool has_lost_events, has_lost_packets;
    struct dt_lost events, packets; /* losses that are not told yet */
};

struct dt_reader {
    const struct dt_reads *reads;
    void *data;
    struct dt_clocks *clocks;
    GHashTable *classes, *streams, *traces;
    struct class_map *last_class;
    struct stream_info *last_stream;
    struct dt_recorded event;
    int64_t now; /* of the last event, for losses without times */
};

/* -- Classes ------------------------------------------------------------------------ */

static bool is_integer(const bt_field_class *class, bool *is_signed) {
    bt_field_class_type type = bt_field_class_get_type(class);

    *is_signed = bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    return *is_signed || bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

static bool is_text(const bt_field_class *class) {
    return bt_field_class_type_is(bt_field_class_get_type(class), BT_FIELD_CLASS_TYPE_STRING);
}

static bool find_member(const bt_field_class *structure, const char *name, uint64_t *index,
                        const bt_field_class **class) {
    uint64_t count;

    if (!structure || !name)
        return false;
    count = bt_field_class_structure_get_member_count(structure);
    for (uint64_t i = 0; i < count; i++) {
        const bt_field_class_structure_member *m =
            bt_field_class_structure_borrow_member_by_index_const(structure, i);

        if (strcmp(bt_field_class_structure_member_get_name(m), name) == 0) {
            *index = i;
            *class = bt_field_class_structure_member_borrow_field_class_const(m);
            return true;
        }
    }
    return false;
}

/* False if a field has a type that does not fit. */
static bool map_members(struct class_map *map, const bt_field_class *payload) {
    const struct slot *slots = probes[map->probe].slots();

    for (unsigned n = 0; slots[n].name; n++) {
        const struct slot *slot = &slots[n];
        bool is_string = slot->type == TYPE_TEXT || slot->type == TYPE_PROGRAM_TEXT;
        struct member *m = &map->member[map->members];
        const bt_field_class *class;

        if (is_string) {
            const char **field = (const char **)((char *)&map->empty + slot->offset);
            *field = "";
        }
        if (!find_member(payload, slot->name, &m->index, &class) &&
            !find_member(payload, slot->alias, &m->index, &class))
            continue;
        if (map->members == MAX_MEMBERS)
            return false;
        if (is_string ? !is_text(class) : !is_integer(class, &m->is_signed))
            return false;
        m->type = slot->type;
        m->offset = slot->offset;
        map->has |= UINT64_C(1) << n;
        map->members++;
    }
    return true;
}

static struct context find_context(const bt_event_class *class, const bt_stream_class *stream,
                                   const char *name) {
    struct context found = {.scope = SCOPE_NONE};
    const bt_field_class *member;

    if (find_member(bt_stream_class_borrow_event_common_context_field_class_const(stream), name,
                    &found.index, &member))
        found.scope = SCOPE_COMMON;
    else if (find_member(bt_event_class_borrow_specific_context_field_class_const(class), name,
                         &found.index, &member))
        found.scope = SCOPE_SPECIFIC;
    else
        return found;
    found.is_text = is_text(member);
    if (!found.is_text && !is_integer(member, &found.is_signed))
        found.scope = SCOPE_NONE;
    return found;
}

static bool find_probe(const char *name, enum dt_probe *probe) {
    if (!name)
        return false;
    for (unsigned i = 0; i < DT_PROBES; i++)
        if (strcmp(probes[i].name, name) == 0) {
            *probe = i;
            return true;
        }
    return false;
}

static void context_of_type(struct context *context, bool is_text) {
    if (context->is_text != is_text)
        context->scope = SCOPE_NONE;
}

static struct class_map *map_class(const bt_event_class *class) {
    const bt_stream_class *stream = bt_event_class_borrow_stream_class_const(class);
    struct class_map *map = g_new0(struct class_map, 1);

    map->class = class;
    bt_event_class_get_ref(class);
    if (!find_probe(bt_event_class_get_name(class), &map->probe) ||
        !bt_stream_class_borrow_default_clock_class_const(stream))
        return map;
    map->is_ours = map_members(map, bt_event_class_borrow_payload_field_class_const(class));
    map->vpid = find_context(class, stream, "vpid");
    map->vtid = find_context(class, stream, "vtid");
    map->procname = find_context(class, stream, "procname");
    map->hostname = find_context(class, stream, "hostname");
    context_of_type(&map->vpid, false);
    context_of_type(&map->vtid, false);
    context_of_type(&map->procname, true);
    context_of_type(&map->hostname, true);
    return map;
}

static void free_map(gpointer data) {
    struct class_map *map = data;

    bt_event_class_put_ref(map->class);
    g_free(map);
}

static struct class_map *class_of(struct dt_reader *r, const bt_event_class *class) {
    if (r->last_class && r->last_class->class == class)
        return r->last_class;
    r->last_class = g_hash_table_lookup(r->classes, class);
    if (!r->last_class) {
        r->last_class = map_class(class);
        g_hash_table_insert(r->classes, (gpointer) class, r->last_class);
    }
    return r->last_class;
}

/* -- Streams ------------------------------------------------------------------------ */

static int64_t environment_number(const bt_trace *trace, const char *name) {
    const bt_value *value = bt_trace_borrow_environment_entry_value_by_name_const(trace, name);

    if (value && bt_value_is_signed_integer(value))
        return bt_value_integer_signed_get(value);
    if (value && bt_value_is_unsigned_integer(value))
        return (int64_t)bt_value_integer_unsigned_get(value);
    return DT_NO_VALUE;
}

static char *environment_text(const bt_trace *trace, const char *name) {
    const bt_value *value = bt_trace_borrow_environment_entry_value_by_name_const(trace, name);

    return g_strdup(value && bt_value_is_string(value) ? bt_value_string_get(value) : "");
}

static struct stream_info *describe_stream(struct dt_reader *r, const bt_stream *stream) {
    const bt_trace *trace = bt_stream_borrow_trace_const(stream);
    struct stream_info *info = g_new0(struct stream_info, 1);
    gpointer number = g_hash_table_lookup(r->traces, trace);

    if (!number) {
        number = GUINT_TO_POINTER(g_hash_table_size(r->traces) + 1);
        bt_trace_get_ref(trace);
        g_hash_table_insert(r->traces, (gpointer)trace, number);
    }
    bt_stream_get_ref(stream);
    *info = (struct stream_info){.stream = stream,
                                 .trace = GPOINTER_TO_UINT(number),
                                 .clock = dt_clocks_of(r->clocks, stream),
                                 .cpu = DT_NO_VALUE,
                                 .last = DT_NO_VALUE,
                                 .vpid = environment_number(trace, "vpid"),
                                 .hostname = environment_text(trace, "hostname"),
                                 .procname = environment_text(trace, "procname")};
    return info;
}

static void free_stream(gpointer data) {
    struct stream_info *info = data;

    bt_stream_put_ref(info->stream);
    g_free(info->hostname);
    g_free(info->procname);
    g_free(info->name);
    g_free(info);
}

static struct stream_info *stream_of(struct dt_reader *r, const bt_stream *stream) {
    if (r->last_stream && r->last_stream->stream == stream)
        return r->last_stream;
    r->last_stream = g_hash_table_lookup(r->streams, stream);
    if (!r->last_stream) {
        r->last_stream = describe_stream(r, stream);
        g_hash_table_insert(r->streams, (gpointer)stream, r->last_stream);
    }
    return r->last_stream;
}

static int64_t integer(const bt_field *field, bool is_signed) {
    return is_signed ? bt_field_integer_signed_get_value(field)
                     : (int64_t)bt_field_integer_unsigned_get_value(field);
}

/* A packet belongs to one CPU. */
static void read_cpu(struct stream_info *info, const bt_packet *packet) {
    const bt_field *context = bt_packet_borrow_context_field_const(packet);
    const bt_field *cpu =
        context ? bt_field_structure_borrow_member_field_by_name_const(context, "cpu_id") : NULL;
    bool is_signed;

    if (cpu && is_integer(bt_field_borrow_class_const(cpu), &is_signed))
        info->cpu = integer(cpu, is_signed);
}

/* -- Times -------------------------------------------------------------------------- */

static bool is_time(int64_t time) {
    return time > -latest && time < latest;
}

static bool read_time(const struct stream_info *stream, const bt_clock_snapshot *snapshot,
                      int64_t *time) {
    if (bt_clock_snapshot_get_ns_from_origin(snapshot, time) !=
            BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK ||
        !is_time(*time))
        return false;
    *time += stream->clock->offset;
    return is_time(*time);
}

static int64_t time_of(const struct stream_info *stream, const bt_clock_snapshot *snapshot) {
    int64_t time;

    return read_time(stream, snapshot, &time) ? time : DT_NO_VALUE;
}

/* -- Events ------------------------------------------------------------------------- */

/* babeltrace2 below 2.0.5 shows an earlier text for an empty one; the length is right. */
static const char *text(const bt_field *field) {
    return bt_field_string_get_length(field) ? bt_field_string_get_value(field) : "";
}

/* LTTng writes a missing text so. */
static const char *program_text(const bt_field *field) {
    const char *written = text(field);

    return strcmp(written, "(null)") == 0 ? "" : written;
}

static void read_member(const struct member *m, const bt_field *payload, union dt_event *fields) {
    const bt_field *field =
        bt_field_structure_borrow_member_field_by_index_const(payload, m->index);
    void *to = (char *)fields + m->offset;

    switch (m->type) {
    case TYPE_TEXT:
        *(const char **)to = text(field);
        break;
    case TYPE_PROGRAM_TEXT:
        *(const char **)to = program_text(field);
        break;
    case TYPE_int32:
    case TYPE_uint32:
        *(uint32_t *)to = (uint32_t)integer(field, m->is_signed);
        break;
    case TYPE_int64:
    case TYPE_uint64:
        *(uint64_t *)to = (uint64_t)integer(field, m->is_signed);
        break;
    }
}

static const bt_field *context_field(const struct context *c, const bt_event *event) {
    const bt_field *context = c->scope == SCOPE_COMMON
                                  ? bt_event_borrow_common_context_field_const(event)
                                  : bt_event_borrow_specific_context_field_const(event);

    return bt_field_structure_borrow_member_field_by_index_const(context, c->index);
}

static int64_t context_number(const struct context *c, const bt_event *event, int64_t otherwise) {
    return c->scope == SCOPE_NONE ? otherwise : integer(context_field(c, event), c->is_signed);
}

static const char *context_text(const struct context *c, const bt_event *event,
                                const char *otherwise) {
    return c->scope == SCOPE_NONE ? otherwise : text(context_field(c, event));
}

static void read_event(struct dt_reader *r, const bt_message *message) {
    const bt_event *event = bt_message_event_borrow_event_const(message);
    struct class_map *map = class_of(r, bt_event_borrow_class_const(event));
    struct stream_info *stream = stream_of(r, bt_event_borrow_stream_const(event));
    struct dt_recorded *to = &r->event;
    const bt_field *payload;
    bool has_time =
        read_time(stream, bt_message_event_borrow_default_clock_snapshot_const(message), &to->time);

    if (has_time)
        stream->last = to->time;
    if (!map->is_ours || !has_time) {
        if (r->reads->skip)
            r->reads->skip(r->data);
        return;
    }
    to->probe = map->probe;
    to->fields = map->empty;
    to->has = map->has;
    payload = bt_event_borrow_payload_field_const(event);
    for (unsigned i = 0; i < map->members; i++)
        read_member(&map->member[i], payload, &to->fields);
    to->trace = stream->trace;
    to->clock = dt_clocks_differ(r->clocks) ? stream->clock : NULL;
    to->cpu = stream->cpu;
    to->vpid = context_number(&map->vpid, event, stream->vpid);
    to->vtid = context_number(&map->vtid, event, DT_NO_VALUE);
    to->hostname = context_text(&map->hostname, event, stream->hostname);
    to->procname = context_text(&map->procname, event, "");
    r->now = to->time;
    r->reads->event(r->data, to);
}

/* -- Losses ------------------------------------------------------------------------- */

static void tell_loss(struct dt_reader *r, struct stream_info *stream, struct dt_lost *lost) {
    lost->end = MAX(lost->end, lost->begin);
    g_free(stream->name);
    stream->name = stream->cpu == DT_NO_VALUE
                       ? g_strdup("a stream")
                       : g_strdup_printf("CPU %" G_GINT64_FORMAT, stream->cpu);
    lost->stream = stream->name;
    if (r->reads->lost)
        r->reads->lost(r->data, stream->hostname, stream->vpid, stream->trace, lost);
}

static void end_lost_events(struct dt_reader *r, struct stream_info *stream) {
    if (!stream->has_lost_events)
        return;
    stream->has_lost_events = false;
    stream->events.begin = stream->last == DT_NO_VALUE ? r->now : stream->last;
    tell_loss(r, stream, &stream->events);
}

/* A packet that is full stays open until another one is free: its last events are lost, from the
   last one that it has to its end. babeltrace2 tells their number, and its end, before the packet.
 */
static void read_lost_events(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_discarded_events_borrow_stream_const(message);
    struct stream_info *info = stream_of(r, stream);

    info->has_lost_events = true;
    info->events = (struct dt_lost){.end = DT_NO_VALUE};
    if (bt_stream_class_discarded_events_have_default_clock_snapshots(
            bt_stream_borrow_class_const(stream))) {
        info->last = time_of(
            info,
            bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(message));
        info->events.end = time_of(
            info, bt_message_discarded_events_borrow_end_default_clock_snapshot_const(message));
    }
    if (bt_message_discarded_events_get_count(message, &info->events.count) !=
        BT_PROPERTY_AVAILABILITY_AVAILABLE)
        info->events.count = 0;
    if (!bt_stream_class_supports_packets(bt_stream_borrow_class_const(stream)))
        end_lost_events(r, info);
}

/* A recorder that overwrites its oldest packets loses all events up to the next packet. How many
   they were, nobody knows. */
static void read_lost_packets(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_discarded_packets_borrow_stream_const(message);
    struct stream_info *info = stream_of(r, stream);
    struct dt_lost *lost = &info->packets;

    *lost = (struct dt_lost){.begin = DT_NO_VALUE, .end = DT_NO_VALUE};
    if (bt_stream_class_discarded_packets_have_default_clock_snapshots(
            bt_stream_borrow_class_const(stream))) {
        lost->begin = time_of(
            info,
            bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(message));
        lost->end = time_of(
            info, bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(message));
    }
    if (lost->begin == DT_NO_VALUE)
        lost->begin = r->now;
    info->has_lost_packets = true;
    if (r->reads->losing)
        r->reads->losing(r->data, info->hostname, info->vpid, info->trace, lost->begin);
}

static void end_lost_packets(struct dt_reader *r, struct stream_info *stream) {
    if (!stream->has_lost_packets)
        return;
    stream->has_lost_packets = false;
    tell_loss(r, stream, &stream->packets);
}

/* -- Packets and streams ------------------------------------------------------------ */

static void begin_packet(struct dt_reader *r, const bt_message *message) {
    const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(message);
    const bt_stream *stream = bt_packet_borrow_stream_const(packet);
    struct stream_info *info = stream_of(r, stream);

    read_cpu(info, packet);
    info->last =
        bt_stream_class_packets_have_beginning_default_clock_snapshot(
            bt_stream_borrow_class_const(stream))
            ? time_of(info,
                      bt_message_packet_beginning_borrow_default_clock_snapshot_const(message))
            : DT_NO_VALUE;
    if (info->last != DT_NO_VALUE)
        info->packets.end = info->last;
    end_lost_packets(r, info);
}

static void end_packet(struct dt_reader *r, const bt_message *message) {
    const bt_packet *packet = bt_message_packet_end_borrow_packet_const(message);

    end_lost_events(r, stream_of(r, bt_packet_borrow_stream_const(packet)));
}

/* Later streams may get its address. */
static void end_stream(struct dt_reader *r, const bt_message *message) {
    const bt_stream *stream = bt_message_stream_end_borrow_stream_const(message);
    struct stream_info *info = stream_of(r, stream);

    end_lost_events(r, info);
    end_lost_packets(r, info);
    r->last_stream = NULL;
    g_hash_table_remove(r->streams, stream);
}

/* -- The reader --------------------------------------------------------------------- */

static void put_trace(gpointer trace) {
    bt_trace_put_ref(trace);
}

struct dt_reader *dt_reader_new(const struct dt_reads *reads, void *data,
                                struct dt_clocks *clocks) {
    struct dt_reader *r = g_new0(struct dt_reader, 1);

    r->reads = reads;
    r->data = data;
    r->clocks = clocks;
    r->classes = g_hash_table_new_full(NULL, NULL, NULL, free_map);
    r->streams = g_hash_table_new_full(NULL, NULL, NULL, free_stream);
    r->traces = g_hash_table_new_full(NULL, NULL, put_trace, NULL);
    return r;
}

void dt_reader_message(struct dt_reader *r, const bt_message *message) {
    switch (bt_message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        read_event(r, message);
        break;
    case BT_MESSAGE_TYPE_PACKET_BEGINNING:
        begin_packet(r, message);
        break;
    case BT_MESSAGE_TYPE_PACKET_END:
        end_packet(r, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        read_lost_events(r, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        read_lost_packets(r, message);
        break;
    case BT_MESSAGE_TYPE_STREAM_END:
        end_stream(r, message);
        break;
    default:
        break;
    }
}

void dt_reader_free(struct dt_reader *r) {
    if (!r)
        return;
    g_hash_table_destroy(r->streams);
    g_hash_table_destroy(r->classes);
    g_hash_table_destroy(r->traces);
    g_free(r);
}
