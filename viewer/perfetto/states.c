/* Runs on schedulers, and states of processes, as slices. */
#include "perfetto/perfetto_sink.h"

uint64_t dt_perfetto_spawn_flow(struct dt_perfetto *s, struct dt_process *process, int64_t time) {
    struct dt_spawn *spawn = &dt_tracks_shown(s->tracks, process)->spawn;

    if (!spawn->track)
        return 0;
    bool is_flow = time != DT_NO_VALUE && time >= spawn->time;
    uint64_t name = dt_name(s->packets, "spawn"), flow = is_flow ? ++s->last_flow : 0;
    dt_event_begin(s->packets, DT_EVENT_INSTANT, spawn->track, spawn->time, DT_CATEGORY_spawn);
    dt_event_name(s->packets, name);
    dt_arg_text(s->packets, DT_ARG_parent, spawn->parent);
    dt_arg_text(s->packets, DT_ARG_child, dt_tracks_show(s->tracks, process));
    if (flow)
        dt_event_flow(s->packets, flow);
    dt_event_end(s->packets);
    spawn->track = 0;
    g_clear_pointer(&spawn->parent, g_free);
    return flow;
}

/* -- Merging short intervals ----------------------------------------------------------- */

/* Writes the held intervals as one slice. */
static void write_held(struct dt_perfetto *s, struct dt_thin *thin, uint64_t track,
                       enum dt_category category) {
    uint64_t name = dt_name(s->packets, "short intervals");

    dt_perfetto_begin_slice(s, track, thin->begin, category, name);
    dt_arg_int(s->packets, DT_ARG_count, (int64_t)thin->held);
    dt_arg_int(s->packets, DT_ARG_running_ns,
               thin->ns[DT_STATE_RUNNING] + thin->ns[DT_STATE_EXITING]);
    if (thin->ns[DT_STATE_COLLECTING])
        dt_arg_int(s->packets, DT_ARG_collecting_ns, thin->ns[DT_STATE_COLLECTING]);
    if (thin->ns[DT_STATE_RUNNABLE])
        dt_arg_int(s->packets, DT_ARG_runnable_ns, thin->ns[DT_STATE_RUNNABLE]);
    if (thin->ns[DT_STATE_WAITING])
        dt_arg_int(s->packets, DT_ARG_waiting_ns, thin->ns[DT_STATE_WAITING]);
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, thin->end);
    dt_thin_clear(thin);
}

void dt_perfetto_end_states(struct dt_perfetto *s, struct dt_process *process) {
    struct dt_thin *thin = &dt_tracks_shown(s->tracks, process)->states;

    if (thin->held)
        write_held(s, thin, dt_tracks_process(s->tracks, process), DT_CATEGORY_state);
}

static void end_runs(struct dt_perfetto *s, struct dt_scheduler *scheduler, struct dt_thin *thin) {
    if (thin->held)
        write_held(s, thin, dt_tracks_scheduler(s->tracks, scheduler, thin->begin, thin->end),
                   DT_CATEGORY_schedule);
}

void dt_perfetto_end_runs(struct dt_perfetto *s, const struct dt_node *node) {
    GHashTableIter iter;
    void *key, *thin;

    g_hash_table_iter_init(&iter, s->runs);
    while (g_hash_table_iter_next(&iter, &key, &thin)) {
        struct dt_scheduler *scheduler = key;

        if (scheduler->node != node)
            continue;
        end_runs(s, scheduler, thin);
        g_hash_table_iter_remove(&iter);
    }
}

/* -- Intervals ------------------------------------------------------------------------- */

static uint64_t show_number(struct dt_perfetto *s, struct dt_process *process) {
    struct dt_shown *shown = dt_tracks_shown(s->tracks, process);

    return dt_name_cached(s->packets, &shown->name, dt_tracks_show(s->tracks, process));
}

/* A slice of a scheduler, named after the process that it ran. */
static void write_run(struct dt_perfetto *s, const struct dt_interval *i) {
    uint64_t track = dt_tracks_scheduler(s->tracks, i->scheduler, i->begin, i->end);
    uint64_t name = show_number(s, i->process);

    dt_perfetto_begin_slice(s, track, i->begin, DT_CATEGORY_schedule, name);
    dt_arg_text(s->packets, DT_ARG_pid, i->process->pid);
    dt_arg_text(s->packets, DT_ARG_in, i->in);
    dt_arg_text(s->packets, DT_ARG_out, i->out);
    dt_event_end(s->packets);
    if (i->state == DT_STATE_COLLECTING) {
        name = dt_name(s->packets, dt_state_names[i->state]);
        dt_perfetto_begin_slice(s, track, i->begin, DT_CATEGORY_collect, name);
        dt_event_end(s->packets);
        dt_perfetto_end_slice(s, track, i->end);
    }
    dt_perfetto_end_slice(s, track, i->end);
}

static void write_state(struct dt_perfetto *s, const struct dt_interval *i, int64_t begin) {
    uint64_t flow = dt_perfetto_spawn_flow(s, i->process, begin);
    uint64_t track = dt_tracks_process(s->tracks, i->process);
    uint64_t name = dt_name(s->packets, dt_state_names[i->state]);

    dt_perfetto_begin_slice(s, track, begin, DT_CATEGORY_state, name);
    if (flow)
        dt_event_flow_end(s->packets, flow);
    dt_arg_text(s->packets, DT_ARG_in, i->in);
    dt_arg_text(s->packets, DT_ARG_out, i->out);
    if (i->scheduler)
        dt_arg_text(s->packets, DT_ARG_scheduler, i->scheduler->name);
    if (i->inferred)
        dt_arg_true(s->packets, DT_ARG_inferred);
    if (i->is_open)
        dt_arg_true(s->packets, DT_ARG_open);
    if (i->state == DT_STATE_COLLECTING) {
        if (i->is_major)
            dt_arg_true(s->packets, DT_ARG_major);
        dt_arg_int(s->packets, DT_ARG_reclaimed_words, (int64_t)i->reclaimed);
        dt_arg_int(s->packets, DT_ARG_heap_words, (int64_t)i->heap);
        dt_arg_int(s->packets, DT_ARG_old_heap_words, (int64_t)i->old_heap);
    }
    dt_event_end(s->packets);
    dt_perfetto_end_slice(s, track, i->end);
}

static void add_run(struct dt_perfetto *s, const struct dt_interval *i) {
    struct dt_thin *thin = g_hash_table_lookup(s->runs, i->scheduler);
    bool is_short;

    if (!thin) {
        thin = g_new0(struct dt_thin, 1);
        g_hash_table_insert(s->runs, i->scheduler, thin);
    }
    is_short = dt_thin_note(thin, i->begin, i->end);
    if (!is_short || dt_thin_is_full(thin, i->begin, i->end))
        end_runs(s, i->scheduler, thin);
    if (is_short)
        dt_thin_add(thin, i->state, i->begin, i->end);
    else
        write_run(s, i);
}

static void add_state(struct dt_perfetto *s, const struct dt_interval *i, int64_t begin) {
    struct dt_thin *thin = &dt_tracks_shown(s->tracks, i->process)->states;
    bool is_short = dt_thin_note(thin, begin, i->end);

    if (!is_short || dt_thin_is_full(thin, begin, i->end))
        dt_perfetto_end_states(s, i->process);
    if (is_short)
        dt_thin_add(thin, i->state, begin, i->end);
    else
        write_state(s, i, begin);
}

void dt_perfetto_interval(void *data, const struct dt_interval *i) {
    struct dt_perfetto *s = data;
    struct dt_shown *shown = dt_tracks_shown(s->tracks, i->process);
    bool runs = dt_is_busy(i->state);
    int64_t begin = MAX(i->begin, shown->last_state);

    if (i->state == DT_STATE_UNKNOWN || i->end < begin)
        return;
    /* A port is idle between its runs; it does not wait. */
    bool is_idle = i->process->kind == DT_PORT && i->state == DT_STATE_WAITING;
    if (!runs && (!s->has_waiting || i->end == begin || is_idle))
        return;
    add_state(s, i, begin);
    shown->last_state = i->end;
    if (!runs)
        return;
    shown->run += i->end - begin;
    if (i->scheduler)
        add_run(s, i);
}
