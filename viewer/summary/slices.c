#include "summary/slices.h"

#include <math.h>

/* ns of a slice at first: 1/8 s. The fewest slices for an estimate. */
#define FIRST_NS INT64_C(125000000)
enum { LEAST = 4 };

static int64_t slice_ns(const struct dt_slices *slices) {
    return FIRST_NS << slices->doublings;
}

static void lengthen(struct dt_slices *slices) {
    for (size_t i = 0; i < DT_SLICES / 2; i++)
        slices->of[i] = slices->of[2 * i] + slices->of[2 * i + 1];
    for (size_t i = DT_SLICES / 2; i < DT_SLICES; i++)
        slices->of[i] = 0;
    slices->doublings++;
}

static void lengthen_to(struct dt_slices *slices, int64_t ns) {
    while (ns / slice_ns(slices) >= DT_SLICES)
        lengthen(slices);
}

void dt_slices_add(struct dt_slices *slices, const struct dt_actor *actor, int64_t time,
                   uint64_t number) {
    const struct dt_node *node = actor->process->node;
    int64_t traced = time > node->first ? MAX(time - node->first - node->untraced, 0) : 0;

    lengthen_to(slices, traced);
    slices->of[traced / slice_ns(slices)] += number;
    slices->total += number;
    slices->node = actor->node;
}

void dt_slices_merge(struct dt_slices *to, const struct dt_slices *from) {
    struct dt_slices more = *from;

    while (more.doublings < to->doublings)
        lengthen(&more);
    while (to->doublings < more.doublings)
        lengthen(to);
    for (size_t i = 0; i < DT_SLICES; i++)
        to->of[i] += more.of[i];
    to->total += more.total;
    to->node = to->node ? to->node : more.node;
}

/* The last slice may be incomplete, so it is part of the one before: without it, a burst at the end
   of the recording would not count as noise. */
double dt_slices_deviation(const struct dt_slices *slices) {
    struct dt_slices whole = *slices;
    double sum = 0, squares = 0;

    if (!slices->node)
        return 0;
    int64_t ns = dt_seen_node_traced(slices->node);
    lengthen_to(&whole, ns);
    int64_t n = ns / slice_ns(&whole);
    if (n < LEAST)
        return -1;
    whole.of[n - 1] += whole.of[n];
    for (int64_t i = 0; i < n; i++)
        sum += (double)whole.of[i];
    double length = (double)ns / (double)slice_ns(&whole); /* in slices */
    for (int64_t i = 0; i < n; i++) {
        double part = i < n - 1 ? 1 : length - (double)i;
        double difference = (double)whole.of[i] - sum / length * part;
        squares += difference * difference / part;
    }
    return sqrt(squares / (double)(n - 1) * length);
}
