/*
 * Tracks above those of short-lived processes of one kind (shared/kinds.h): "shop_oven × 62", which
 * Perfetto shows folded. The first few descriptors of a kind wait until it is known whether there
 * are more.
 */
#ifndef DT_VIEWER_PERFETTO_KINDS_H
#define DT_VIEWER_PERFETTO_KINDS_H

#include "perfetto/packets.h"
#include "shared/told.h"

struct dt_track_kinds;

struct dt_track_kinds *dt_track_kinds_new(struct dt_packets *packets);
void dt_track_kinds_free(struct dt_track_kinds *kinds);

/* Writes the track of a process that is gone, maybe below that of its kind, whose number is taken
   from `last`. The track's strings are copied. */
void dt_track_kinds_write(struct dt_track_kinds *kinds, const struct dt_process *process,
                          const struct dt_track *track, uint64_t *last);
/* Before the node is gone: writes the tracks of its kinds, and what has waited. */
void dt_track_kinds_end(struct dt_track_kinds *kinds, const struct dt_node *node);

#endif
