/*
 * The bounds are a graph whose edge from A to B is the most that offset(A) - offset(B) may be; the
 * shortest path is the tightest bound. With all shortest paths, the middle between the bounds of
 * each clock against the reference keeps all bounds.
 *
 * A circle below 0 is a contradiction: clocks that run at different speeds, or that were set
 * meanwhile. Then all bounds are widened by the least time that resolves it, and so are the
 * uncertainties.
 */
#include "viewer/clocks_bounds.h"

#include <string.h>

#include <glib.h>

enum {
    /* The time for all paths is that number cubed. Without offsets, a recording of more clocks is
       shown as it is. */
    CLOCKS_MAX = 64,
};

/* Sums of two do not overflow. */
static const int64_t none = INT64_C(1) << 61, most = INT64_C(1) << 60;

struct dt_bounds {
    unsigned n;
    int64_t *at; /* n * n */
};

struct dt_bounds *dt_bounds_new(unsigned clocks) {
    struct dt_bounds *b = g_new0(struct dt_bounds, 1);

    b->n = clocks <= CLOCKS_MAX ? clocks : 0;
    b->at = g_new(int64_t, (gsize)b->n * b->n + 1);
    for (unsigned i = 0; i < b->n * b->n; i++)
        b->at[i] = i % (b->n + 1) ? none : 0;
    return b;
}

void dt_bounds_free(struct dt_bounds *b) {
    g_free(b->at);
    g_free(b);
}

static int64_t *bound(const struct dt_bounds *b, unsigned from, unsigned to) {
    return &b->at[from * b->n + to];
}

void dt_bounds_add(struct dt_bounds *b, unsigned from, unsigned to, int64_t ns) {
    if (from < b->n && to < b->n && from != to)
        *bound(b, from, to) = MIN(*bound(b, from, to), CLAMP(ns, -most, most));
}

static int64_t sum(int64_t a, int64_t b) {
    return a == none || b == none ? none : CLAMP(a + b, -most, most);
}

/* False for a contradiction. */
static bool close_paths(const struct dt_bounds *b) {
    for (unsigned over = 0; over < b->n; over++)
        for (unsigned i = 0; i < b->n; i++)
            for (unsigned j = 0; j < b->n; j++) {
                int64_t way = sum(*bound(b, i, over), *bound(b, over, j));

                *bound(b, i, j) = MIN(*bound(b, i, j), way);
            }
    for (unsigned i = 0; i < b->n; i++)
        if (*bound(b, i, i) < 0)
            return false;
    return true;
}

/* With all bounds wider by so much. */
static bool is_consistent(struct dt_bounds *b, const int64_t *given, int64_t wider) {
    for (unsigned i = 0; i < b->n * b->n; i++)
        b->at[i] = i % (b->n + 1) ? sum(given[i], wider) : 0;
    return close_paths(b);
}

/* Widens them as far as they contradict each other, and closes the paths. */
static void make_consistent(struct dt_bounds *b) {
    int64_t *given = g_memdup2(b->at, (gsize)b->n * b->n * sizeof *b->at);
    int64_t low = -1, high = most; /* too little; enough */

    if (!is_consistent(b, given, 0)) {
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;

            *(is_consistent(b, given, middle) ? &high : &low) = middle;
        }
        is_consistent(b, given, high);
    }
    g_free(given);
}

/* What the bounds against the reference allow: at least, at most; `none` of a side without any. */
struct range {
    int64_t least, most;
};

static struct range range_of(const struct dt_bounds *b, unsigned clock) {
    int64_t to = *bound(b, clock, 0), from = *bound(b, 0, clock);

    return (struct range){from == none ? none : -from, to};
}

static enum dt_clock_known known(const struct range *r) {
    if (r->least != none && r->most != none)
        return DT_CLOCK_BOTH_WAYS;
    return r->least != none || r->most != none ? DT_CLOCK_ONE_WAY : DT_CLOCK_RECORDED;
}

/* The middle or, with one bound alone, as it is recorded if that may be. */
static int64_t choose(const struct range *r) {
    if (known(r) == DT_CLOCK_BOTH_WAYS)
        return r->least + (r->most - r->least) / 2;
    if (r->least != none)
        return MAX(r->least, 0);
    return MIN(r->most, 0);
}

static void fix(const struct dt_bounds *b, unsigned clock, int64_t offset) {
    *bound(b, clock, 0) = offset;
    *bound(b, 0, clock) = -offset;
    close_paths(b);
}

void dt_bounds_solve(struct dt_bounds *b, struct dt_clocks *clocks) {
    static const enum dt_clock_known order[] = {DT_CLOCK_BOTH_WAYS, DT_CLOCK_ONE_WAY,
                                                DT_CLOCK_RECORDED};
    bool is_fixed[CLOCKS_MAX] = {false};

    if (!b->n)
        return;
    make_consistent(b);
    dt_clocks_nth(clocks, 0)->known = DT_CLOCK_REFERENCE;
    for (unsigned i = 1; i < b->n; i++) {
        struct dt_clock *clock = dt_clocks_nth(clocks, i);
        struct range r = range_of(b, i);

        clock->known = known(&r);
        if (clock->known == DT_CLOCK_BOTH_WAYS)
            clock->uncertainty = r.most - r.least - (r.most - r.least) / 2;
    }
    for (unsigned o = 0; o < G_N_ELEMENTS(order); o++)
        for (unsigned i = 1; i < b->n; i++) {
            struct dt_clock *clock = dt_clocks_nth(clocks, i);
            struct range r = range_of(b, i);

            if (is_fixed[i] || clock->known != order[o])
                continue;
            is_fixed[i] = true;
            clock->offset = choose(&r);
            fix(b, i, clock->offset);
        }
}
