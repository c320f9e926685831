#include "page/lane.h"

#include "shared/texts.h"

struct dt_page_lane *dt_page_lane_new(struct dt_actor *actor) {
    struct dt_page_lane *lane = g_new0(struct dt_page_lane, 1);

    lane->actor = dt_actor_keep(actor);
    lane->references = 1;
    lane->index = -1;
    return lane;
}

struct dt_page_lane *dt_page_lane_ref(struct dt_page_lane *lane) {
    if (lane)
        lane->references++;
    return lane;
}

void dt_page_lane_unref(struct dt_page_lane *lane) {
    if (!lane || --lane->references > 0)
        return;
    dt_page_lane_drop_intervals(lane);
    dt_actor_drop(lane->actor);
    g_free(lane);
}

static int64_t busy(const struct dt_page_interval *of) {
    if (of->state == DT_PAGE_LANE_MERGED)
        return (of->end - of->begin) / 1000 * of->extra;
    return dt_is_busy((enum dt_state)of->state) ? of->end - of->begin : 0;
}

void dt_page_lane_add(struct dt_page_lane *lane, const struct dt_interval *interval,
                      uint32_t text) {
    struct dt_page_interval added = {
        .begin = interval->begin,
        .end = interval->end,
        .text = text,
        .state = (uint8_t)interval->state,
        .extra = interval->state == DT_STATE_COLLECTING && interval->is_major,
    };

    if (interval->end < interval->begin || interval->state == DT_STATE_UNKNOWN)
        return;
    if (dt_is_busy(interval->state))
        lane->run_ns += interval->end - interval->begin;
    else if (interval->state == DT_STATE_RUNNABLE)
        lane->runnable_ns += interval->end - interval->begin;
    lane->intervals_seen++;
    if (!lane->intervals)
        lane->intervals = g_array_new(false, false, sizeof added);
    g_array_append_val(lane->intervals, added);
}

/* -- Merging ------------------------------------------------------------------------------ */

/* The last level is longer than the time since the epoch, so it merges all intervals into one. */
enum { LEVELS = 53 };

static unsigned bits(uint64_t number) {
    return number ? (unsigned)(64 - __builtin_clzll(number)) : 0;
}

/* The finest level that merges two neighbours. The slots of a level nest within those of the next,
   so the result does not depend on earlier merges. */
static unsigned level_of(const struct dt_page_interval *of, const struct dt_page_interval *next) {
    int64_t longest = MAX(of->end - of->begin, next->end - next->begin);
    uint64_t length = (uint64_t)MAX(longest, next->begin - of->end) / 1000;
    uint64_t slots = (uint64_t)(of->begin / 1000) ^ (uint64_t)(next->begin / 1000);

    return MIN(MAX(bits(length), bits(slots)), LEVELS - 1);
}

/* The number of intervals, starting at `from`, that become one. */
static unsigned run_of_short(const GArray *all, unsigned from, unsigned level) {
    const struct dt_page_interval *of = &g_array_index(all, struct dt_page_interval, from);
    unsigned n = from + 1;

    for (; n < all->len && level_of(of, of + 1) <= level; n++)
        of++;
    return n - from;
}

static struct dt_page_interval as_one(const GArray *all, unsigned from, unsigned size) {
    const struct dt_page_interval *of = &g_array_index(all, struct dt_page_interval, from);
    struct dt_page_interval one = {
        .begin = of->begin, .end = of[size - 1].end, .state = DT_PAGE_LANE_MERGED};
    int64_t ran = 0;

    for (unsigned n = 0; n < size; n++)
        ran += busy(&of[n]);
    if (one.end > one.begin)
        one.extra =
            (uint16_t)CLAMP((double)ran * 1000 / (double)(one.end - one.begin) + 0.5, 0, 1000);
    return one;
}

static void merge(struct dt_page_lane *lane, unsigned level) {
    GArray *all = lane->intervals;
    unsigned to = 0;

    for (unsigned from = 0; from < all->len;) {
        unsigned size = run_of_short(all, from, level);
        struct dt_page_interval one =
            size > 1 ? as_one(all, from, size) : g_array_index(all, struct dt_page_interval, from);

        for (unsigned n = from; size > 1 && n < from + size; n++)
            lane->merged +=
                g_array_index(all, struct dt_page_interval, n).state != DT_PAGE_LANE_MERGED;
        g_array_index(all, struct dt_page_interval, to++) = one;
        from += size;
    }
    g_array_set_size(all, to);
}

void dt_page_lane_limit(struct dt_page_lane *lane, unsigned most) {
    unsigned fewer[LEVELS] = {0}, left = dt_page_lane_size(lane), level = 0;
    const struct dt_page_interval *of;

    if (left <= MAX(most, 1))
        return;
    of = (void *)lane->intervals->data;
    for (unsigned n = 1; n < lane->intervals->len; n++, of++)
        fewer[level_of(of, of + 1)]++;
    for (left -= fewer[0]; left > most && level < LEVELS - 1;)
        left -= fewer[++level];
    merge(lane, level);
}

/* -- Combining lanes ----------------------------------------------------------------------- */

void dt_page_lane_take(struct dt_page_lane *lane, const struct dt_page_lane *other) {
    lane->run_ns += other->run_ns;
    lane->runnable_ns += other->runnable_ns;
    lane->messages += other->messages;
    lane->intervals_seen += other->intervals_seen;
    lane->merged += other->merged;
    lane->has_crashed |= other->has_crashed;
    if (!other->intervals)
        return;
    if (!lane->intervals)
        lane->intervals = g_array_new(false, false, sizeof(struct dt_page_interval));
    g_array_append_vals(lane->intervals, other->intervals->data, other->intervals->len);
}

/* Ranks of states, the busiest first. A state hides those of higher rank numbers. */
enum { RANKS = 4 };

static unsigned rank_of(const struct dt_page_interval *of) {
    if (of->state == DT_PAGE_LANE_MERGED)
        return 1;
    if (dt_is_busy((enum dt_state)of->state))
        return 0;
    return of->state == DT_STATE_RUNNABLE ? 2 : 3;
}

static int by_begin(const void *a, const void *b) {
    const struct dt_page_interval *one = a, *other = b;

    return dt_compare(one->begin, other->begin);
}

/* Merges two sorted arrays. */
static GArray *in_order(const struct dt_page_interval *one, unsigned ones,
                        const struct dt_page_interval *other, unsigned others) {
    GArray *all = g_array_sized_new(false, false, sizeof *one, ones + others);

    while (ones > 0 && others > 0) {
        if (one->begin <= other->begin) {
            g_array_append_vals(all, one++, 1);
            ones--;
        } else {
            g_array_append_vals(all, other++, 1);
            others--;
        }
    }
    g_array_append_vals(all, one, ones);
    g_array_append_vals(all, other, others);
    return all;
}

/* A fold has many intervals, and all but the last additions are sorted already. */
static GArray *sorted(GArray *all) {
    const struct dt_page_interval *of = (void *)all->data;
    g_autoptr(GArray) rest = g_array_new(false, false, sizeof *of);
    unsigned n = MIN(all->len, 1);

    while (n < all->len && of[n - 1].begin <= of[n].begin)
        n++;
    g_array_append_vals(rest, of + n, all->len - n);
    g_array_sort(rest, by_begin);
    return in_order(of, n, (void *)rest->data, rest->len);
}

/* Adds the parts of an interval that `above` does not cover. `at` is where the search starts; it
   only increases. */
static void add_free(GArray *to, struct dt_page_interval part, const GArray *above, unsigned *at) {
    const int64_t end = part.end;
    unsigned n;

    while (*at < above->len && g_array_index(above, struct dt_page_interval, *at).end <= part.begin)
        ++*at;
    for (n = *at; n < above->len && part.begin < end; n++) {
        const struct dt_page_interval *over = &g_array_index(above, struct dt_page_interval, n);

        if (over->begin >= end)
            break;
        part.end = over->begin;
        if (part.end > part.begin)
            g_array_append_val(to, part);
        part.begin = MAX(part.begin, over->end);
    }
    part.end = end;
    if (part.end > part.begin)
        g_array_append_val(to, part);
}

void dt_page_lane_flatten(struct dt_page_lane *lane) {
    g_autoptr(GArray) all = NULL;
    GArray *flat;

    if (!lane->intervals)
        return;
    all = sorted(lane->intervals);
    g_array_free(lane->intervals, true);
    flat = g_array_new(false, false, sizeof(struct dt_page_interval));
    for (unsigned rank = 0; rank < RANKS; rank++) {
        g_autoptr(GArray) parts = g_array_new(false, false, sizeof(struct dt_page_interval));
        g_autoptr(GArray) above = flat;
        int64_t free = INT64_MIN;
        unsigned at = 0;

        for (unsigned n = 0; n < all->len; n++) {
            struct dt_page_interval part = g_array_index(all, struct dt_page_interval, n);

            if (rank_of(&part) != rank || part.end <= free)
                continue;
            part.begin = MAX(part.begin, free);
            free = part.end;
            add_free(parts, part, above, &at);
        }
        flat = in_order((void *)above->data, above->len, (void *)parts->data, parts->len);
    }
    lane->intervals = flat;
}

void dt_page_lane_drop_intervals(struct dt_page_lane *lane) {
    if (lane->intervals)
        g_array_free(lane->intervals, true);
    lane->intervals = NULL;
}
