/* The data of the sink, its callbacks in other files, and functions that begin and end slices. */
#pragma once

#include "perfetto/tracks.h"

struct dt_perfetto {
    struct dt_packets *packets;
    struct dt_tracks *tracks;
    GHashTable *runs;      /* struct dt_scheduler -> struct dt_thin */
    GHashTable *arguments; /* number of an open frame -> text */
    bool has_messages, has_waiting, has_text;
    bool has_clock;
    uint64_t last_flow, last_correlation;
};

/* Leaves the event open for arguments. */
static inline void dt_perfetto_begin_slice(struct dt_perfetto *s, uint64_t track, int64_t time,
                                           enum dt_category category, uint64_t name) {
    dt_event_begin(s->packets, DT_EVENT_BEGIN, track, time, category);
    dt_event_name(s->packets, name);
}

static inline void dt_perfetto_end_slice(struct dt_perfetto *s, uint64_t track, int64_t time) {
    dt_event_begin(s->packets, DT_EVENT_END, track, time, DT_CATEGORY_NONE);
    dt_event_end(s->packets);
}

void dt_perfetto_interval(void *data, const struct dt_interval *interval);
void dt_perfetto_delivered(void *data, struct dt_message *message);
void dt_perfetto_message_gone(void *data, struct dt_message *message);
void dt_perfetto_mailbox(void *data, struct dt_process *process, int64_t time);
void dt_perfetto_server_call(void *data, const struct dt_server_call *call);
void dt_perfetto_instant(void *data, const struct dt_instant *instant);

/* Write the held intervals. Call them before the process, or the node, is gone. */
void dt_perfetto_end_states(struct dt_perfetto *s, struct dt_process *process);
void dt_perfetto_end_runs(struct dt_perfetto *s, const struct dt_node *node);
/* Returns the flow that ends at the next event of the process; 0: the spawn is not recorded, or the
   event is not the first one. */
uint64_t dt_perfetto_spawn_flow(struct dt_perfetto *s, struct dt_process *process, int64_t time);
