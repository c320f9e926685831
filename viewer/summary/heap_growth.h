/*
 * Growing heaps, detected by the data that major collections leave.
 *
 * A major collection allocates a heap for all existing data and garbage, rounded up in steps of a
 * fifth. The data that remains is at most the size of the heap. It is at least two steps less than
 * that size, minus the reclaimed words.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dt_interval;

/* Sizes after major collections, in words. */
struct dt_heap {
    unsigned collections;
    unsigned rises; /* to a new maximum, `between_rises` after the last one */
    uint64_t first, last, largest;
    uint64_t most_at_first; /* upper bound of the data after the first two */
    uint64_t least_at_last[2];
    int64_t begin, end, last_rise;
};

/* A collection has ended. Allocates `*of` when the heap gets large. */
void dt_heap_collected(struct dt_heap **of, const struct dt_interval *i);

/* Whether the heap certainly has more data at the end than at the begin. */
bool dt_heap_has_grown(const struct dt_heap *heap);
