/*
 * Instants of a Perfetto trace: log lines, marks, events of the VM and of processes. Their
 * arguments are the recorded fields, with the names of the catalogue.
 */
#pragma once

#include "perfetto/packets.h"
#include "perfetto/tracks.h"
#include "shared/model_events.h"

void dt_perfetto_instant(struct dt_packets *packets, struct dt_tracks *tracks,
                         const struct dt_instant *instant);
