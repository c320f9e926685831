/*
 * Heaps that grow: what major collections leave.
 *
 * A major collection makes a heap for all data and garbage that were there, rounded up in steps of
 * a fifth. What it keeps is at most the heap's size, and at least two steps less, without what was
 * reclaimed.
 */
#ifndef DT_VIEWER_SUMMARY_HEAPS_H
#define DT_VIEWER_SUMMARY_HEAPS_H

#include <stdbool.h>
#include <stdint.h>

struct dt_interval;
struct dt_who;

/* Words, after major collections. */
struct dt_heap {
    unsigned collections;
    unsigned rises; /* to a size that it never had, half a second or more after the last one */
    uint64_t first, last, largest;
    uint64_t most_at_first; /* what it kept at most, at the first two */
    uint64_t least_at_last[2];
    int64_t begin, end, last_rise;
};

/* A collection has ended. */
void dt_heap_collected(struct dt_who *who, const struct dt_interval *i);

/* Whether it keeps more at the end than at the begin for sure. */
bool dt_heap_has_grown(const struct dt_heap *heap);

#endif
