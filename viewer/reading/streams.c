#include "reading/streams.h"

#include <glib.h>

#include "reading/classes.h"

/* The latest valid time, in the year 2116. The difference of two valid times does not overflow. */
static const int64_t latest = INT64_C(1) << 62;

struct trace {
    const bt_trace *trace;
    uint64_t number;
    bool has_deliveries, has_lives;
};

struct dt_streams {
    struct dt_clocks *clocks;
    GHashTable *known, *traces;
    struct dt_stream *last;
};

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

static const struct trace *trace_of(struct dt_streams *streams, const bt_trace *trace) {
    const bt_trace_class *class = bt_trace_borrow_class_const(trace);
    struct trace *found = g_hash_table_lookup(streams->traces, trace);

    if (found)
        return found;
    found = g_new0(struct trace, 1);
    *found = (struct trace){.trace = trace,
                            .number = g_hash_table_size(streams->traces) + 1,
                            .has_deliveries = dt_classes_have(class, DT_message_delivery) ||
                                              dt_classes_have(class, DT_message_receive),
                            .has_lives = dt_classes_have(class, DT_process_spawn) &&
                                         dt_classes_have(class, DT_process_exit)};
    bt_trace_get_ref(trace);
    g_hash_table_insert(streams->traces, (void *)trace, found);
    return found;
}

static struct dt_stream *describe(struct dt_streams *streams, const bt_stream *stream) {
    const bt_trace *trace = bt_stream_borrow_trace_const(stream);
    const bt_stream_class *class = bt_stream_borrow_class_const(stream);
    struct dt_stream *info = g_new0(struct dt_stream, 1);
    const struct trace *of = trace_of(streams, trace);

    bt_stream_get_ref(stream);
    *info = (struct dt_stream){.stream = stream,
                               .trace = of->number,
                               .has_deliveries = of->has_deliveries,
                               .has_lives = of->has_lives,
                               .has_clock = bt_stream_class_borrow_default_clock_class_const(class),
                               .clock = dt_clocks_of(streams->clocks, stream),
                               .cpu = DT_NO_VALUE,
                               .last = DT_NO_VALUE,
                               .vpid = environment_number(trace, "vpid"),
                               .hostname = environment_text(trace, "hostname"),
                               .procname = environment_text(trace, "procname")};
    return info;
}

static void free_stream(void *data) {
    struct dt_stream *info = data;

    bt_stream_put_ref(info->stream);
    g_free(info->hostname);
    g_free(info->procname);
    g_free(info->name);
    g_free(info);
}

struct dt_stream *dt_stream_of(struct dt_streams *streams, const bt_stream *stream) {
    if (streams->last && streams->last->stream == stream)
        return streams->last;
    streams->last = g_hash_table_lookup(streams->known, stream);
    if (!streams->last) {
        streams->last = describe(streams, stream);
        g_hash_table_insert(streams->known, (void *)stream, streams->last);
    }
    return streams->last;
}

void dt_stream_end(struct dt_streams *streams, const bt_stream *stream) {
    streams->last = NULL;
    g_hash_table_remove(streams->known, stream);
}

void dt_stream_read_cpu(struct dt_stream *stream, const bt_packet *packet) {
    const bt_field *context = bt_packet_borrow_context_field_const(packet);
    const bt_field *cpu =
        context ? bt_field_structure_borrow_member_field_by_name_const(context, "cpu_id") : NULL;
    bool is_signed;

    if (cpu && dt_is_integer(bt_field_borrow_class_const(cpu), &is_signed))
        stream->cpu = dt_integer(cpu, is_signed);
}

/* -- Times -------------------------------------------------------------------------- */

static bool is_time(int64_t time) {
    return time > -latest && time < latest;
}

bool dt_stream_read_time(const struct dt_stream *stream, const bt_clock_snapshot *snapshot,
                         int64_t *time) {
    if (bt_clock_snapshot_get_ns_from_origin(snapshot, time) !=
            BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK ||
        !is_time(*time))
        return false;
    *time += stream->clock->offset;
    return is_time(*time);
}

int64_t dt_stream_time(const struct dt_stream *stream, const bt_clock_snapshot *snapshot) {
    int64_t time;

    return dt_stream_read_time(stream, snapshot, &time) ? time : DT_NO_VALUE;
}

/* -- Begin and end ------------------------------------------------------------------ */

static void free_trace(void *data) {
    struct trace *of = data;

    bt_trace_put_ref(of->trace);
    g_free(of);
}

struct dt_streams *dt_streams_new(struct dt_clocks *clocks) {
    struct dt_streams *streams = g_new0(struct dt_streams, 1);

    streams->clocks = clocks;
    streams->known = g_hash_table_new_full(NULL, NULL, NULL, free_stream);
    streams->traces = g_hash_table_new_full(NULL, NULL, NULL, free_trace);
    return streams;
}

void dt_streams_free(struct dt_streams *streams) {
    g_hash_table_destroy(streams->known);
    g_hash_table_destroy(streams->traces);
    g_free(streams);
}
