#include "summary/heap_growth.h"

#include <glib.h>

#include "shared/model_events.h"
#include "summary/findings/limits.h"

enum {
    /* Words: smaller heaps grow and shrink all the time. */
    LEAST = 1 << 17,
    /* The number of first and of last collections whose sizes are compared. */
    COMPARED = 2,
};

/* The heap's size minus two of the VM's steps, and minus the reclaimed words. */
static uint64_t kept_at_least(const struct dt_interval *i) {
    uint64_t words = i->heap / 36 * 25;

    return words > i->reclaimed ? words - i->reclaimed : 0;
}

static void begin(struct dt_heap *heap, const struct dt_interval *i) {
    *heap = (struct dt_heap){
        .first = i->heap, .largest = i->heap, .begin = i->end, .last_rise = i->end};
}

void dt_heap_collected(struct dt_heap **of, const struct dt_interval *i) {
    if (!i->is_major || i->is_open || (!*of && i->heap < LEAST))
        return;
    if (!*of)
        *of = g_new0(struct dt_heap, 1);
    struct dt_heap *heap = *of;
    /* The heap has shrunk: the data was temporary. */
    if (heap->collections == 0 || i->heap < heap->largest / 2)
        begin(heap, i);
    if (heap->collections < COMPARED)
        heap->most_at_first = MAX(heap->most_at_first, i->heap);
    if (i->heap > heap->largest &&
        i->end - heap->last_rise >= dt_limits.growing_heap.between_rises) {
        heap->rises++;
        heap->last_rise = i->end;
    }
    heap->largest = MAX(heap->largest, i->heap);
    heap->least_at_last[heap->collections++ % COMPARED] = kept_at_least(i);
    heap->last = i->heap;
    heap->end = i->end;
}

bool dt_heap_has_grown(const struct dt_heap *heap) {
    return heap->collections >= 2 * COMPARED &&
           MIN(heap->least_at_last[0], heap->least_at_last[1]) > heap->most_at_first;
}
