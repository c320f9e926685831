/*
 * A count, and how evenly it is spread over the recording: its parts in equal slices of the traced
 * time. Whenever the time outgrows the slices, their length doubles.
 */
#pragma once

#include "actors/actors.h"

enum { DT_SLICES = 16 };

struct dt_slices {
    uint64_t total;
    struct dt_seen_node *node; /* of the last number; NULL: none */
    unsigned doublings;
    uint64_t of[DT_SLICES];
};

/* Adds a number at a time of a living process's node, whose pauses of tracing do not count. */
void dt_slices_add(struct dt_slices *slices, const struct dt_actor *actor, int64_t time,
                   uint64_t number);
void dt_slices_merge(struct dt_slices *to, const struct dt_slices *from);
/* The standard deviation of the total, estimated from the slices; negative if they are too few. */
double dt_slices_deviation(const struct dt_slices *slices);
