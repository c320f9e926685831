#include "perfetto/packets.h"

#include <string.h>

#include "perfetto/wire.h"
#include "shared/file.h"

enum {
    CHUNK = 1 << 16,
    INTERNED_MAX = 100000,
    /* Texts are cut here, at a character boundary. */
    NAME_MAX_BYTES = 200,
    HEAD_MAX_BYTES = 60, /* of a name's second part */
    SEQUENCE = 1,
};

struct dt_packets {
    struct dt_file *file;
    struct dt_wire wire;
    size_t packet, event; /* start offsets of the open packet and event */
    GHashTable *names;    /* text -> number */
    uint64_t next_name;   /* numbers are never reused */
    unsigned interned;    /* since the state was last cleared */
    unsigned generation;
};

/* -- Packets --------------------------------------------------------------------------- */

static void packet_begin(struct dt_packets *p, unsigned flags) {
    p->packet = dt_wire_enter(&p->wire, PF_Trace_packet);
    dt_wire_number(&p->wire, PF_TracePacket_trusted_packet_sequence_id, SEQUENCE);
    dt_wire_number(&p->wire, PF_TracePacket_sequence_flags, flags);
}

static void packet_end(struct dt_packets *p) {
    dt_wire_leave(&p->wire, p->packet);
    if (p->wire.size < CHUNK)
        return;
    dt_file_write(p->file, p->wire.bytes, p->wire.size);
    p->wire.size = 0;
}

static void put_interned(struct dt_packets *p, unsigned field, unsigned number_field,
                         uint64_t number, unsigned name_field, const char *name) {
    size_t start = dt_wire_enter(&p->wire, field);

    dt_wire_number(&p->wire, number_field, number);
    dt_wire_text(&p->wire, name_field, name, NAME_MAX_BYTES);
    dt_wire_leave(&p->wire, start);
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

/* Reader and writer forget all names. Names of categories and arguments are written again. */
static void clear_state(struct dt_packets *p) {
    g_hash_table_remove_all(p->names);
    p->interned = 0;
    p->generation++;
    packet_begin(p, PF_SequenceFlags_SEQ_INCREMENTAL_STATE_CLEARED |
                        PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = dt_wire_enter(&p->wire, PF_TracePacket_interned_data);
    for (unsigned i = 1; i < DT_CATEGORIES; i++)
        put_interned(p, PF_InternedData_event_categories, PF_EventCategory_iid, i,
                     PF_EventCategory_name, categories[i]);
    for (unsigned i = 1; i < DT_ARGS; i++)
        put_interned(p, PF_InternedData_debug_annotation_names, PF_DebugAnnotationName_iid, i,
                     PF_DebugAnnotationName_name, args[i]);
    dt_wire_leave(&p->wire, start);
    packet_end(p);
}

struct dt_packets *dt_packets_open(const char *path, GError **error) {
    struct dt_file *file = dt_file_open(path, error);

    if (!file)
        return NULL;
    struct dt_packets *p = g_new0(struct dt_packets, 1);
    p->file = file;
    p->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    dt_wire_reserve(&p->wire, CHUNK);
    clear_state(p);
    return p;
}

const GError *dt_packets_failed(const struct dt_packets *p) {
    return dt_file_failed(p->file);
}

bool dt_packets_close(struct dt_packets *p, GError **error) {
    dt_file_write(p->file, p->wire.bytes, p->wire.size);
    p->wire.size = 0;
    return dt_file_close(g_steal_pointer(&p->file), error);
}

void dt_packets_free(struct dt_packets *p) {
    if (!p)
        return;
    dt_file_discard(p->file);
    g_hash_table_destroy(p->names);
    g_free(p->wire.bytes);
    g_free(p);
}

static inline uint64_t time_of(int64_t time) {
    return time > 0 ? (uint64_t)time : 0;
}

static void put_clock(struct dt_packets *p, unsigned id, int64_t time) {
    size_t clock = dt_wire_enter(&p->wire, PF_ClockSnapshot_clocks);

    dt_wire_number(&p->wire, PF_Clock_clock_id, id);
    dt_wire_number(&p->wire, PF_Clock_timestamp, time_of(time));
    dt_wire_leave(&p->wire, clock);
}

/* Perfetto interprets times as those of the clock BOOTTIME. */
void dt_packets_clock(struct dt_packets *p, int64_t time) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    dt_wire_number(&p->wire, PF_TracePacket_timestamp, time_of(time));
    size_t snapshot = dt_wire_enter(&p->wire, PF_TracePacket_clock_snapshot);
    put_clock(p, PF_BuiltinClocks_BOOTTIME, time);
    put_clock(p, PF_BuiltinClocks_REALTIME, time);
    dt_wire_leave(&p->wire, snapshot);
    packet_end(p);
}

/* -- Names ----------------------------------------------------------------------------- */

static uint64_t write_name(struct dt_packets *p, const char *text) {
    uint64_t number = ++p->next_name;

    p->interned++;
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = dt_wire_enter(&p->wire, PF_TracePacket_interned_data);
    put_interned(p, PF_InternedData_event_names, PF_EventName_iid, number, PF_EventName_name, text);
    dt_wire_leave(&p->wire, start);
    packet_end(p);
    return number;
}

uint64_t dt_name(struct dt_packets *p, const char *text) {
    void *number = g_hash_table_lookup(p->names, text);

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
    size_t start = dt_wire_enter(&p->wire, PF_TrackDescriptor_process);

    dt_wire_number(&p->wire, PF_ProcessDescriptor_pid, (uint64_t)track->pid);
    dt_wire_text(&p->wire, PF_ProcessDescriptor_process_name, track->name, NAME_MAX_BYTES);
    dt_wire_leave(&p->wire, start);
}

static void put_unit(struct dt_packets *p, const char *unit) {
    size_t start = dt_wire_enter(&p->wire, PF_TrackDescriptor_counter);

    if (strcmp(unit, "bytes") == 0)
        dt_wire_number(&p->wire, PF_CounterDescriptor_unit, PF_Unit_UNIT_SIZE_BYTES);
    else
        dt_wire_text(&p->wire, PF_CounterDescriptor_unit_name, unit, NAME_MAX_BYTES);
    dt_wire_leave(&p->wire, start);
}

void dt_track_write(struct dt_packets *p, const struct dt_track *track) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    size_t start = dt_wire_enter(&p->wire, PF_TracePacket_track_descriptor);
    dt_wire_number(&p->wire, PF_TrackDescriptor_uuid, track->uuid);
    if (track->parent)
        dt_wire_number(&p->wire, PF_TrackDescriptor_parent_uuid, track->parent);
    dt_wire_text(&p->wire, PF_TrackDescriptor_name, track->name, NAME_MAX_BYTES);
    if (track->description && *track->description)
        dt_wire_text(&p->wire, PF_TrackDescriptor_description, track->description, DT_ARG_MAX);
    if (track->is_process)
        put_process(p, track);
    if (track->is_counter)
        put_unit(p, track->unit);
    if (track->is_ordered)
        dt_wire_number(&p->wire, PF_TrackDescriptor_child_ordering,
                       PF_ChildTracksOrdering_EXPLICIT);
    if (track->rank)
        dt_wire_number(&p->wire, PF_TrackDescriptor_sibling_order_rank,
                       (uint64_t)CLAMP(track->rank, INT32_MIN, INT32_MAX));
    if (track->is_alone)
        dt_wire_number(&p->wire, PF_TrackDescriptor_sibling_merge_behavior,
                       PF_SiblingMergeBehavior_SIBLING_MERGE_BEHAVIOR_NONE);
    dt_wire_leave(&p->wire, start);
    packet_end(p);
}

/* -- Events ---------------------------------------------------------------------------- */

void dt_event_begin(struct dt_packets *p, enum dt_event_type type, uint64_t track, int64_t time,
                    enum dt_category category) {
    packet_begin(p, PF_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
    dt_wire_number(&p->wire, PF_TracePacket_timestamp, time_of(time));
    p->event = dt_wire_enter(&p->wire, PF_TracePacket_track_event);
    dt_wire_number(&p->wire, PF_TrackEvent_type, type);
    dt_wire_number(&p->wire, PF_TrackEvent_track_uuid, track);
    if (category)
        dt_wire_number(&p->wire, PF_TrackEvent_category_iids, category);
}

void dt_event_end(struct dt_packets *p) {
    dt_wire_leave(&p->wire, p->event);
    packet_end(p);
}

void dt_event_name(struct dt_packets *p, uint64_t name) {
    dt_wire_number(&p->wire, PF_TrackEvent_name_iid, name);
}

void dt_event_text(struct dt_packets *p, const char *before, const char *text) {
    size_t start = dt_wire_enter(&p->wire, PF_TrackEvent_name);

    dt_wire_put(&p->wire, before, NAME_MAX_BYTES);
    dt_wire_put(&p->wire, text, HEAD_MAX_BYTES);
    dt_wire_leave(&p->wire, start);
}

void dt_event_value(struct dt_packets *p, int64_t value) {
    dt_wire_number(&p->wire, PF_TrackEvent_counter_value, (uint64_t)value);
}

void dt_event_flow(struct dt_packets *p, uint64_t flow) {
    dt_wire_number(&p->wire, PF_TrackEvent_flow_ids_old, flow);
    dt_wire_fixed64(&p->wire, PF_TrackEvent_flow_ids, flow);
}

void dt_event_flow_end(struct dt_packets *p, uint64_t flow) {
    dt_wire_number(&p->wire, PF_TrackEvent_terminating_flow_ids_old, flow);
    dt_wire_fixed64(&p->wire, PF_TrackEvent_terminating_flow_ids, flow);
}

void dt_event_correlation(struct dt_packets *p, uint64_t id) {
    dt_wire_number(&p->wire, PF_TrackEvent_correlation_id, id);
}

static size_t arg_begin(struct dt_packets *p, enum dt_arg name) {
    size_t start = dt_wire_enter(&p->wire, PF_TrackEvent_debug_annotations);

    dt_wire_number(&p->wire, PF_DebugAnnotation_name_iid, name);
    return start;
}

static size_t named_arg_begin(struct dt_packets *p, const char *name) {
    size_t start = dt_wire_enter(&p->wire, PF_TrackEvent_debug_annotations);

    dt_wire_text(&p->wire, PF_DebugAnnotation_name, name, NAME_MAX_BYTES);
    return start;
}

static void text_end(struct dt_packets *p, size_t start, const char *text) {
    dt_wire_text(&p->wire, PF_DebugAnnotation_string_value, text, DT_ARG_MAX);
    dt_wire_leave(&p->wire, start);
}

static void int_end(struct dt_packets *p, size_t start, int64_t value) {
    dt_wire_number(&p->wire, PF_DebugAnnotation_int_value, (uint64_t)value);
    dt_wire_leave(&p->wire, start);
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

    dt_wire_number(&p->wire, PF_DebugAnnotation_bool_value, true);
    dt_wire_leave(&p->wire, start);
}

void dt_arg_named_text(struct dt_packets *p, const char *name, const char *text) {
    if (*text)
        text_end(p, named_arg_begin(p, name), text);
}

void dt_arg_named_int(struct dt_packets *p, const char *name, int64_t value) {
    int_end(p, named_arg_begin(p, name), value);
}
