#include "viewer/perfetto_packets.h"

#include <string.h>

#include "viewer/sink.h"

enum {
    CHUNK = 1 << 16,
    INTERNED_MAX = 100000,
    /* Texts are cut here, at a character. */
    NAME_MAX_BYTES = 200,
    HEAD_MAX_BYTES = 60, /* of a name's second part */
    /* All fields of a packet but its texts. */
    SPARE = 512,
    SEQUENCE = 1,
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
};

struct dt_packets {
    struct dt_file *file;
    uint8_t *bytes;
    size_t size, capacity;
    size_t packet, event; /* where the open ones start */
    GHashTable *names;    /* text -> number */
    uint64_t next_name;   /* numbers are never used again */
    unsigned interned;    /* since the state was cleared last */
    unsigned generation;
};

/* -- The wire format ------------------------------------------------------------------- */

static inline void reserve(struct dt_packets *p, size_t bytes) {
    if (p->capacity - p->size >= bytes)
        return;
    p->capacity = 2 * (p->capacity + bytes);
    p->bytes = g_realloc(p->bytes, p->capacity);
}

static inline void put_varint(struct dt_packets *p, uint64_t value) {
    while (value > 127) {
        p->bytes[p->size++] = (uint8_t)(value | 128);
        value >>= 7;
    }
    p->bytes[p->size++] = (uint8_t)value;
}

static inline void put_tag(struct dt_packets *p, unsigned field, unsigned wire) {
    put_varint(p, field << 3 | wire);
}

static inline void put_number(struct dt_packets *p, unsigned field, uint64_t value) {
    reserve(p, 16);
    put_tag(p, field, WIRE_VARINT);
    put_varint(p, value);
}

static void put_fixed64(struct dt_packets *p, unsigned field, uint64_t value) {
    reserve(p, 16);
    put_tag(p, field, WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        p->bytes[p->size++] = (uint8_t)(value >> 8 * i);
}

/* A message or text inside: its length is written by `leave`, usually into the one byte that
   `enter` leaves. */
static inline size_t enter(struct dt_packets *p, unsigned field) {
    reserve(p, SPARE);
    put_tag(p, field, WIRE_BYTES);
    return ++p->size;
}

static inline void leave(struct dt_packets *p, size_t start) {
    size_t size = p->size - start, more = 0;
    for (size_t s = size; s > 127; s >>= 7)
        more++;
    if (more) {
        reserve(p, more);
        memmove(p->bytes + start + more, p->bytes + start, size);
    }
    p->size = start - 1;
    put_varint(p, size);
    p->size += size;
}

/* -- Texts ----------------------------------------------------------------------------- */

static inline bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7f;
}

/* Bytes of the character at `text` that may stand as they are; 0: none. Control characters may not,
   nor those that change the direction of what follows. */
static size_t harmless(const char *text, size_t size) {
    if (is_plain((unsigned char)*text))
        return 1;
    gunichar c = g_utf8_get_char_validated(text, (gssize)size);
    if (c >= 0x110000 || c < 0xa0 || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
        return 0;
    return (size_t)(g_utf8_next_char(text) - text);
}

static void put_escaped(struct dt_packets *p, const char *text, size_t size, size_t max) {
    static const char digits[] = "0123456789abcdef", cut[] = "…";
    size_t end = p->size + max;
    for (size_t i = 0; i < size;) {
        unsigned char byte = (unsigned char)text[i];
        size_t bytes = harmless(text + i, size - i);
        size_t needs = bytes ? bytes : 4;
        if (p->size + needs + (i + (bytes ? bytes : 1) < size ? sizeof cut - 1 : 0) > end) {
            memcpy(p->bytes + p->size, cut, sizeof cut - 1);
            p->size += sizeof cut - 1;
            return;
        }
        if (bytes) {
            memcpy(p->bytes + p->size, text + i, bytes);
            p->size += bytes;
            i += bytes;
            continue;
        }
        p->bytes[p->size++] = '\\';
        if (byte == '\n' || byte == '\t') {
            p->bytes[p->size++] = byte == '\n' ? 'n' : 't';
        } else {
            p->bytes[p->size++] = 'x';
            p->bytes[p->size++] = (uint8_t)digits[byte >> 4];
            p->bytes[p->size++] = (uint8_t)digits[byte & 15];
        }
        i++;
    }
}

/* All bytes are printable ASCII; looks at eight at a time. */
static bool all_plain(const char *text, size_t size) {
    const uint64_t ones = ~(uint64_t)0 / 255, highs = ones << 7;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t eight;
        memcpy(&eight, text + i, 8);
        /* the high bits of bytes that are above 0x7e or below 0x20 */
        if ((eight | (eight + ones) | (eight - ones * 0x20)) & highs)
            return false;
    }
    for (; i < size; i++)
        if (!is_plain((unsigned char)text[i]))
            return false;
    return true;
}

/* Appends at most `max` bytes of valid UTF-8. */
static void put_harmless(struct dt_packets *p, const char *text, size_t max) {
    reserve(p, max);
    size_t size = strlen(text);
    if (size > max || !all_plain(text, size)) {
        put_escaped(p, text, size, max);
        return;
    }
    memcpy(p->bytes + p->size, text, size);
    p->size += size;
}

static void put_text(struct dt_packets *p, unsigned field, const char *text, size_t max) {
    size_t start = enter(p, field);
    put_harmless(p, text, max);
    leave(p, start);
}

/* -- Packets --------------------------------------------------------------------------- */

static void packet_begin(struct dt_packets *p, unsigned flags) {
    p->packet = enter(p, PF_Trace_packet);
    put_number(p, PF_TracePacket_trusted_packet_sequence_id, SEQUENCE);
    put_number(p, PF_TracePacket_sequence_flags, flags);
}

static void packet_end(struct dt_packets *p) {
    leave(p, p->packet);
    if (p->size < CHUNK)
        return;
    dt_file_write(p->file, p->bytes, p->size);
    p->size = 0;
}

static void put_interned(struct dt_packets *p, unsigned field, unsigned number_field,
                         uint64_t number, unsigned name_field, const char *name) {
    size_t start = enter(p, field);
    put_number(p, number_field, number);
    put_text(p, name_field, name, NAME_MAX_BYTES);
    leave(p, start);
}

static const char *const categories[] = {NULL,
#define X(name) #name,
                                         DT_PERFETTO_CATEGORIES(X)
#undef X
};

static const char *const args[] = {NULL,
#define X(name) #name,
                                   DT_PERFETTO_ARGS(X)
#undef X
};

/* Reader and writer forget all names; those of categories and arguments are told again. */
static void clear_state(struct dt_packets *p) {
    g_hash_table_remove_all(p->names);
    p->interned = 0;
    p->generation++;
    packet_begin(p, PF_SequenceFlags_SEQ_INCREMENTAL_STATE_CLEARED |
                        PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = enter(p, PF_TracePacket_interned_data);
    for (unsigned i = 1; i < DT_CATEGORIES; i++)
        put_interned(p, PF_InternedData_event_categories, PF_EventCategory_iid, i,
                     PF_EventCategory_name, categories[i]);
    for (unsigned i = 1; i < DT_ARGS; i++)
        put_interned(p, PF_InternedData_debug_annotation_names, PF_DebugAnnotationName_iid, i,
                     PF_DebugAnnotationName_name, args[i]);
    leave(p, start);
    packet_end(p);
}

struct dt_packets *dt_packets_open(const char *path, GError **error) {
    struct dt_file *file = dt_file_open(path, error);
    if (!file)
        return NULL;
    struct dt_packets *p = g_new0(struct dt_packets, 1);
    p->file = file;
    p->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    reserve(p, CHUNK);
    clear_state(p);
    return p;
}

const GError *dt_packets_failed(const struct dt_packets *p) {
    return dt_file_failed(p->file);
}

bool dt_packets_close(struct dt_packets *p, GError **error) {
    dt_file_write(p->file, p->bytes, p->size);
    p->size = 0;
    return dt_file_close(g_steal_pointer(&p->file), error);
}

void dt_packets_free(struct dt_packets *p) {
    if (!p)
        return;
    dt_file_discard(p->file);
    g_hash_table_destroy(p->names);
    g_free(p->bytes);
    g_free(p);
}

static inline uint64_t time_of(int64_t time) {
    return time > 0 ? (uint64_t)time : 0;
}

static void put_clock(struct dt_packets *p, unsigned id, int64_t time) {
    size_t clock = enter(p, PF_ClockSnapshot_clocks);
    put_number(p, PF_Clock_clock_id, id);
    put_number(p, PF_Clock_timestamp, time_of(time));
    leave(p, clock);
}

/* Perfetto takes times for those of the clock BOOTTIME. */
void dt_packets_clock(struct dt_packets *p, int64_t time) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    put_number(p, PF_TracePacket_timestamp, time_of(time));
    size_t snapshot = enter(p, PF_TracePacket_clock_snapshot);
    put_clock(p, PF_BuiltinClocks_BOOTTIME, time);
    put_clock(p, PF_BuiltinClocks_REALTIME, time);
    leave(p, snapshot);
    packet_end(p);
}

/* -- Names ----------------------------------------------------------------------------- */

static uint64_t write_name(struct dt_packets *p, const char *text) {
    uint64_t number = ++p->next_name;
    p->interned++;
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = enter(p, PF_TracePacket_interned_data);
    put_interned(p, PF_InternedData_event_names, PF_EventName_iid, number, PF_EventName_name, text);
    leave(p, start);
    packet_end(p);
    return number;
}

uint64_t dt_name(struct dt_packets *p, const char *text) {
    gpointer number = g_hash_table_lookup(p->names, text);
    if (number)
        return GPOINTER_TO_SIZE(number);
    if (p->interned >= INTERNED_MAX)
        clear_state(p);
    uint64_t new = write_name(p, text);
    g_hash_table_insert(p->names, g_strdup(text), GSIZE_TO_POINTER(new));
    return new;
}

uint64_t dt_name_cached(struct dt_packets *p, struct dt_name *name, const char *text) {
    if (name->number && name->generation == p->generation)
        return name->number;
    if (p->interned >= INTERNED_MAX)
        clear_state(p);
    name->number = write_name(p, text);
    name->generation = p->generation;
    return name->number;
}

/* -- Tracks ---------------------------------------------------------------------------- */

static void put_process(struct dt_packets *p, const struct dt_track *track) {
    size_t start = enter(p, PF_TrackDescriptor_process);
    put_number(p, PF_ProcessDescriptor_pid, (uint64_t)track->pid);
    put_text(p, PF_ProcessDescriptor_process_name, track->name, NAME_MAX_BYTES);
    leave(p, start);
}

static void put_unit(struct dt_packets *p, const char *unit) {
    size_t start = enter(p, PF_TrackDescriptor_counter);
    if (strcmp(unit, "bytes") == 0)
        put_number(p, PF_CounterDescriptor_unit, PF_Unit_UNIT_SIZE_BYTES);
    else
        put_text(p, PF_CounterDescriptor_unit_name, unit, NAME_MAX_BYTES);
    leave(p, start);
}

void dt_track_write(struct dt_packets *p, const struct dt_track *track) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = enter(p, PF_TracePacket_track_descriptor);
    put_number(p, PF_TrackDescriptor_uuid, track->uuid);
    if (track->parent)
        put_number(p, PF_TrackDescriptor_parent_uuid, track->parent);
    put_text(p, PF_TrackDescriptor_name, track->name, NAME_MAX_BYTES);
    if (track->description && *track->description)
        put_text(p, PF_TrackDescriptor_description, track->description, DT_ARG_MAX);
    if (track->is_process)
        put_process(p, track);
    if (track->is_counter)
        put_unit(p, track->unit);
    if (track->is_ordered)
        put_number(p, PF_TrackDescriptor_child_ordering, PF_ChildTracksOrdering_EXPLICIT);
    if (track->rank)
        put_number(p, PF_TrackDescriptor_sibling_order_rank,
                   (uint64_t)CLAMP(track->rank, INT32_MIN, INT32_MAX));
    if (track->is_alone)
        put_number(p, PF_TrackDescriptor_sibling_merge_behavior,
                   PF_SiblingMergeBehavior_SIBLING_MERGE_BEHAVIOR_NONE);
    leave(p, start);
    packet_end(p);
}

/* -- Events ---------------------------------------------------------------------------- */

void dt_event_begin(struct dt_packets *p, enum dt_event_type type, uint64_t track, int64_t time,
                    enum dt_category category) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    put_number(p, PF_TracePacket_timestamp, time_of(time));
    p->event = enter(p, PF_TracePacket_track_event);
    put_number(p, PF_TrackEvent_type, type);
    put_number(p, PF_TrackEvent_track_uuid, track);
    if (category)
        put_number(p, PF_TrackEvent_category_iids, category);
}

void dt_event_end(struct dt_packets *p) {
    leave(p, p->event);
    packet_end(p);
}

void dt_event_name(struct dt_packets *p, uint64_t name) {
    put_number(p, PF_TrackEvent_name_iid, name);
}

void dt_event_text(struct dt_packets *p, const char *before, const char *text) {
    size_t start = enter(p, PF_TrackEvent_name);
    put_harmless(p, before, NAME_MAX_BYTES);
    put_harmless(p, text, HEAD_MAX_BYTES);
    leave(p, start);
}

void dt_event_value(struct dt_packets *p, int64_t value) {
    put_number(p, PF_TrackEvent_counter_value, (uint64_t)value);
}

void dt_event_flow(struct dt_packets *p, uint64_t flow) {
    put_number(p, PF_TrackEvent_flow_ids_old, flow);
    put_fixed64(p, PF_TrackEvent_flow_ids, flow);
}

void dt_event_flow_end(struct dt_packets *p, uint64_t flow) {
    put_number(p, PF_TrackEvent_terminating_flow_ids_old, flow);
    put_fixed64(p, PF_TrackEvent_terminating_flow_ids, flow);
}

void dt_event_correlation(struct dt_packets *p, uint64_t id) {
    put_number(p, PF_TrackEvent_correlation_id, id);
}

static size_t arg_begin(struct dt_packets *p, enum dt_arg name) {
    size_t start = enter(p, PF_TrackEvent_debug_annotations);
    put_number(p, PF_DebugAnnotation_name_iid, name);
    return start;
}

static size_t named_arg_begin(struct dt_packets *p, const char *name) {
    size_t start = enter(p, PF_TrackEvent_debug_annotations);
    put_text(p, PF_DebugAnnotation_name, name, NAME_MAX_BYTES);
    return start;
}

static void text_end(struct dt_packets *p, size_t start, const char *text) {
    put_text(p, PF_DebugAnnotation_string_value, text, DT_ARG_MAX);
    leave(p, start);
}

static void int_end(struct dt_packets *p, size_t start, int64_t value) {
    put_number(p, PF_DebugAnnotation_int_value, (uint64_t)value);
    leave(p, start);
}

void dt_arg_text(struct dt_packets *p, enum dt_arg name, const char *text) {
    if (*text)
        text_end(p, arg_begin(p, name), text);
}

void dt_arg_int(struct dt_packets *p, enum dt_arg name, int64_t value) {
    int_end(p, arg_begin(p, name), value);
}

void dt_arg_true(struct dt_packets *p, enum dt_arg name) {
    size_t start = arg_begin(p, name);
    put_number(p, PF_DebugAnnotation_bool_value, true);
    leave(p, start);
}

void dt_arg_named_text(struct dt_packets *p, const char *name, const char *text) {
    if (*text)
        text_end(p, named_arg_begin(p, name), text);
}

void dt_arg_named_int(struct dt_packets *p, const char *name, int64_t value) {
    int_end(p, named_arg_begin(p, name), value);
}
