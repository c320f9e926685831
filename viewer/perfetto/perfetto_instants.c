/*
 * Instants: log lines, marks, events of the VM and of processes. Their arguments are the recorded
 * fields, with the names of the catalogue.
 */
#include "perfetto/perfetto_sink.h"

#include "shared/probe_fields.h"

/* Writes the fields that the trace has as arguments. */
static void put_fields(struct dt_packets *packets, const struct dt_recorded *e) {
    const struct dt_probe_field *all = dt_probe_fields(e->probe);
    union dt_event fields = e->fields;

    for (unsigned n = 0; all[n].name; n++) {
        if (!(e->has >> n & 1))
            continue;
        if (dt_field_is_text(&all[n]))
            dt_arg_named_text(packets, all[n].name, *dt_field_text(&fields, &all[n]));
        else
            dt_arg_named_int(packets, all[n].name, dt_field_number(&fields, &all[n]));
    }
}

/* -- Tracks and names of instants -------------------------------------------------------- */

/* Names are interned; texts are not, because they rarely repeat. */
struct shown_as {
    enum dt_category category;
    uint64_t name; /* 0: `before` and `text` */
    const char *before, *text;
};

/* The prefix of a log line's name: its level. */
static const char *log_level(const char *level) {
    static const char *const levels[] = {"emergency: ", "alert: ",  "critical: ", "error: ",
                                         "warning: ",   "notice: ", "info: ",     "debug: "};

    for (unsigned i = 0; i < G_N_ELEMENTS(levels); i++)
        if (*level && g_str_has_prefix(levels[i], level))
            return levels[i];
    return "";
}

static struct shown_as look(struct dt_packets *packets, const struct dt_recorded *e) {
    const union dt_event *f = &e->fields;

    switch (e->probe) {
    case DT_log:
        return (struct shown_as){DT_CATEGORY_log, 0, log_level(f->log.level), f->log.text};
    case DT_user_mark:
        return (struct shown_as){.category = DT_CATEGORY_mark,
                                 .name = dt_name(packets, f->user_mark.name)};
    case DT_telemetry_event:
        return (struct shown_as){.category = DT_CATEGORY_event,
                                 .name = dt_name(packets, f->telemetry_event.name)};
    case DT_user_trace_s1:
        return (struct shown_as){DT_CATEGORY_mark, 0, "", f->user_trace_s1.message};
    case DT_user_trace_i4s4:
        return (struct shown_as){DT_CATEGORY_mark, 0, "", f->user_trace_i4s4.s1};
    case DT_user_trace_n:
        return (struct shown_as){DT_CATEGORY_mark, 0, "", f->user_trace_n.s1};
    case DT_seq_trace_print:
        return (struct shown_as){DT_CATEGORY_mark, 0, "", f->seq_trace_print.message};
    case DT_process_register:
        return (struct shown_as){.category = DT_CATEGORY_event,
                                 .name = dt_name(packets, f->process_register.type)};
    case DT_process_link:
        return (struct shown_as){.category = DT_CATEGORY_event,
                                 .name = dt_name(packets, f->process_link.type)};
    case DT_port_link:
        return (struct shown_as){.category = DT_CATEGORY_event,
                                 .name = dt_name(packets, f->port_link.type)};
    default:
        break;
    }
    const char *name = dt_probe_names[e->probe];
    bool is_vm = g_str_has_prefix(name, "vm_") || g_str_has_prefix(name, "node_");
    return (struct shown_as){.category = is_vm ? DT_CATEGORY_vm : DT_CATEGORY_event,
                             .name = dt_name(packets, name)};
}

static uint64_t track_of(struct dt_tracks *tracks, const struct dt_instant *i,
                         enum dt_category category) {
    if (category == DT_CATEGORY_log)
        return dt_tracks_root(tracks, i->node, DT_ROOT_LOG);
    if (category == DT_CATEGORY_mark)
        return dt_tracks_root(tracks, i->node, DT_ROOT_MARKS);
    if (category == DT_CATEGORY_vm || !i->process)
        return dt_tracks_root(tracks, i->node, DT_ROOT_VM);
    return dt_tracks_child(tracks, i->process, DT_CHILD_EVENTS);
}

void dt_perfetto_instant(void *data, const struct dt_instant *i) {
    const struct dt_perfetto *s = data;
    struct dt_packets *packets = s->packets;
    struct dt_tracks *tracks = s->tracks;
    const struct dt_recorded *e = i->event;
    struct shown_as as = look(packets, e);

    dt_event_begin(packets, DT_EVENT_INSTANT, track_of(tracks, i, as.category), e->time,
                   as.category);
    if (as.name)
        dt_event_name(packets, as.name);
    else
        dt_event_text(packets, as.before, as.text);
    if (i->process)
        dt_arg_text(packets, DT_ARG_process, dt_tracks_show(tracks, i->process));
    if (i->other)
        dt_arg_text(packets, DT_ARG_other, dt_tracks_show(tracks, i->other));
    put_fields(packets, e);
    dt_event_end(packets);
}
