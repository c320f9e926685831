/*
 * Parent tracks of short-lived processes of one kind (shared/process_kinds.h): "shop_oven × 62",
 * which Perfetto shows folded. The first few descriptors of a kind are held back until there are
 * enough members for such a track.
 */
#pragma once

#include "perfetto/packets.h"
#include "shared/model_events.h"

struct dt_track_kinds;

struct dt_track_kinds *dt_track_kinds_new(struct dt_packets *packets);
void dt_track_kinds_free(struct dt_track_kinds *kinds);

/* Writes the track of a process that is gone, possibly below the track of its kind. A new track of
   a kind gets the number after `last`. Copies the track's strings. */
void dt_track_kinds_write(struct dt_track_kinds *kinds, const struct dt_process *process,
                          const struct dt_track *track, uint64_t *last);
/* Before the node is gone: writes the tracks of its kinds, and the waiting descriptors. */
void dt_track_kinds_end(struct dt_track_kinds *kinds, const struct dt_node *node);
