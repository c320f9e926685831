/*
 * The bounds form a graph: the edge from A to B is the greatest possible value of offset(A) -
 * offset(B), so the shortest path is the tightest bound. Once all shortest paths are known, the
 * middle between the bounds of each clock against the reference satisfies all of them.
 *
 * A send may be recorded late, by at most the time since its sender's previous event; without such
 * an event, the delay is unknown. The likely bounds are tried in the order of that time. Each is
 * used if it agrees with the sure bounds and with the likely ones before it. The uncertainty is
 * that of the sure bounds, on each side that has any.
 *
 * A cycle below 0 is a contradiction. Sure bounds contradict each other if clocks run at different
 * speeds, or were set meanwhile. Then all sure bounds are widened by the least time that resolves
 * it. In a cycle of k bounds, a single one may be too tight by k times as much, so the uncertainty
 * grows by that time for each other clock.
 */
#include "offsets/bounds.h"

#include <glib.h>

enum {
    /* Finding all paths takes the cube of the number of clocks. A recording with more clocks is
       shown without corrections. */
    CLOCKS_MAX = 64,
};

/* `most` is 146 years: the sum of two such times does not overflow. */
static const int64_t none = INT64_MAX, most = INT64_MAX / 2;

struct matrix {
    unsigned n;
    int64_t *at; /* n * n */
};

/* offset(from) - offset(to) <= ns, if the send was recorded in time. */
struct likely {
    unsigned from, to;
    int64_t ns;
    int64_t late; /* the longest possible delay; `unknown` */
};

static const int64_t unknown = INT64_MAX;

struct dt_bounds {
    struct matrix sure;
    GArray *likely;
};

static struct matrix matrix_new(unsigned n) {
    struct matrix m = {n, g_new(int64_t, (size_t)n * n + 1)};

    for (unsigned i = 0; i < n * n; i++)
        m.at[i] = i % (n + 1) ? none : 0;
    return m;
}

static struct matrix matrix_copy(const struct matrix *m) {
    return (struct matrix){m->n, g_memdup2(m->at, ((size_t)m->n * m->n + 1) * sizeof *m->at)};
}

struct dt_bounds *dt_bounds_new(unsigned clocks) {
    struct dt_bounds *b = g_new0(struct dt_bounds, 1);

    b->sure = matrix_new(clocks <= CLOCKS_MAX ? clocks : 0);
    b->likely = g_array_new(false, false, sizeof(struct likely));
    return b;
}

void dt_bounds_free(struct dt_bounds *b) {
    g_free(b->sure.at);
    g_array_free(b->likely, true);
    g_free(b);
}

static int64_t *bound(const struct matrix *m, unsigned from, unsigned to) {
    return &m->at[from * m->n + to];
}

static void tighten(const struct matrix *m, unsigned from, unsigned to, int64_t ns) {
    *bound(m, from, to) = MIN(*bound(m, from, to), ns);
}

static bool is_too_far(int64_t ns) {
    return ns < -most || ns > most;
}

void dt_bounds_add(struct dt_bounds *b, unsigned from, unsigned to, int64_t ns, int64_t sure) {
    struct likely likely = {from, to, ns, unknown};

    if (from >= b->sure.n || to >= b->sure.n || from == to || is_too_far(ns))
        return;
    if (sure != DT_NO_VALUE && !is_too_far(sure)) {
        likely.late = MAX(sure - ns, 0);
        tighten(&b->sure, from, to, sure);
    }
    g_array_append_val(b->likely, likely);
}

static int64_t sum(int64_t a, int64_t b) {
    return a == none || b == none ? none : CLAMP(a + b, -most, most);
}

/* Finds all shortest paths. Returns false for a contradiction. */
static bool close_paths(const struct matrix *m) {
    for (unsigned over = 0; over < m->n; over++)
        for (unsigned i = 0; i < m->n; i++)
            for (unsigned j = 0; j < m->n; j++) {
                int64_t way = sum(*bound(m, i, over), *bound(m, over, j));

                *bound(m, i, j) = MIN(*bound(m, i, j), way);
            }
    for (unsigned i = 0; i < m->n; i++)
        if (*bound(m, i, i) < 0)
            return false;
    return true;
}

/* Whether the given bounds, each widened by `wider`, are free of contradictions. */
static bool is_consistent(const struct matrix *m, const int64_t *given, int64_t wider) {
    for (unsigned i = 0; i < m->n * m->n; i++)
        m->at[i] = i % (m->n + 1) ? sum(given[i], wider) : 0;
    return close_paths(m);
}

/* Widens the bounds until they do not contradict each other, and finds all shortest paths. Returns
   the time by which they were widened. */
static int64_t make_consistent(const struct matrix *m) {
    int64_t *given = g_memdup2(m->at, (size_t)m->n * m->n * sizeof *m->at);
    int64_t low = 0, high = 0; /* too little; enough */

    if (!is_consistent(m, given, 0)) {
        for (high = most; high - low > 1;) {
            int64_t middle = low + (high - low) / 2;

            *(is_consistent(m, given, middle) ? &high : &low) = middle;
        }
        is_consistent(m, given, high);
    }
    g_free(given);
    return high;
}

/* The least late first, the unknown last; of those, the one that bounds least. The rest makes
   the order deterministic. */
static int compare_likely(const void *a, const void *b) {
    const struct likely *x = a, *y = b;

    if (x->late != y->late)
        return x->late < y->late ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Returns false if the bound contradicts the others, whose shortest paths are known. */
static bool agrees(const struct matrix *m, const struct likely *l) {
    return sum(l->ns, *bound(m, l->to, l->from)) >= 0;
}

/* Updates the paths that use this bound. If it does not shorten the path from a clock to `to`, it
   shortens no path from that clock. */
static void take(const struct matrix *m, const struct likely *l) {
    for (unsigned i = 0; i < m->n; i++) {
        int64_t way = sum(*bound(m, i, l->from), l->ns);

        if (way >= *bound(m, i, l->to))
            continue;
        for (unsigned j = 0; j < m->n; j++)
            tighten(m, i, j, sum(way, *bound(m, l->to, j)));
    }
}

/* The certain bounds, and the likely ones that agree with them. */
static struct matrix best_bounds(const struct dt_bounds *b) {
    struct matrix best = matrix_copy(&b->sure);

    g_array_sort(b->likely, compare_likely);
    for (unsigned i = 0; i < b->likely->len; i++) {
        const struct likely *l = &g_array_index(b->likely, struct likely, i);

        if (l->ns < *bound(&best, l->from, l->to) && agrees(&best, l))
            take(&best, l);
    }
    return best;
}

/* The range of offsets that the bounds against the reference allow; `none` if a side has no bound.
 */
struct range {
    int64_t least, most;
};

static struct range range_of(const struct matrix *m, unsigned clock) {
    int64_t to = *bound(m, clock, 0), from = *bound(m, 0, clock);

    return (struct range){from == none ? none : -from, to};
}

/* The certain range; on a side without a certain bound, the likely one. */
static struct range certain(const struct range *sure, const struct range *likely) {
    return (struct range){sure->least == none ? likely->least : sure->least,
                          sure->most == none ? likely->most : sure->most};
}

static enum dt_clock_known known(const struct range *r) {
    if (r->least != none && r->most != none)
        return DT_CLOCK_BOTH_WAYS;
    return r->least != none || r->most != none ? DT_CLOCK_ONE_WAY : DT_CLOCK_RECORDED;
}

/* The middle of the range. With only one bound, the recorded time if the bound allows it. */
static int64_t choose(const struct range *r) {
    if (known(r) == DT_CLOCK_BOTH_WAYS)
        return r->least + (r->most - r->least) / 2;
    if (r->least != none)
        return MAX(r->least, 0);
    return MIN(r->most, 0);
}

static void fix(const struct matrix *m, unsigned clock, int64_t offset) {
    *bound(m, clock, 0) = offset;
    *bound(m, 0, clock) = -offset;
    close_paths(m);
}

static int64_t width(const struct range *r) {
    return known(r) == DT_CLOCK_BOTH_WAYS ? r->most - r->least : none;
}

/* Sets the offsets of the clocks whose offsets are known in this way, the most certain one first,
   because it narrows the range of the others. */
static void fix_known(const struct matrix *m, struct dt_clocks *clocks, const struct range *ranges,
                      enum dt_clock_known how) {
    bool fixed[CLOCKS_MAX] = {false};

    for (unsigned surest;; fixed[surest] = true) {
        struct range r;

        surest = 0;
        for (unsigned i = 1; i < m->n; i++)
            if (!fixed[i] && dt_clocks_nth(clocks, i)->known == how &&
                (!surest || width(&ranges[i]) < width(&ranges[surest])))
                surest = i;
        if (!surest)
            return;
        r = range_of(m, surest);
        dt_clocks_nth(clocks, surest)->offset = choose(&r);
        fix(m, surest, choose(&r));
    }
}

/* The maximum distance of the true offset from this one. */
static int64_t uncertainty(const struct range *r, int64_t offset) {
    return MIN(MAX(r->most - offset, offset - r->least), most);
}

static int64_t times(int64_t ns, unsigned n) {
    return n ? MIN(ns, most / n) * n : 0;
}

void dt_bounds_solve(struct dt_bounds *b, struct dt_clocks *clocks) {
    const struct matrix *sure = &b->sure;
    struct matrix best;
    struct range *ranges;
    int64_t wider;

    if (!sure->n)
        return;
    wider = times(make_consistent(sure), sure->n - 1);
    best = best_bounds(b);
    ranges = g_new0(struct range, best.n);
    dt_clocks_nth(clocks, 0)->known = DT_CLOCK_REFERENCE;
    for (unsigned i = 1; i < best.n; i++) {
        struct range of_sure = range_of(sure, i), likely = range_of(&best, i);

        ranges[i] = certain(&of_sure, &likely);
        dt_clocks_nth(clocks, i)->known = known(&likely);
    }
    fix_known(&best, clocks, ranges, DT_CLOCK_BOTH_WAYS);
    fix_known(&best, clocks, ranges, DT_CLOCK_ONE_WAY);
    fix_known(&best, clocks, ranges, DT_CLOCK_RECORDED);
    for (unsigned i = 1; i < best.n; i++) {
        struct dt_clock *clock = dt_clocks_nth(clocks, i);

        if (clock->known == DT_CLOCK_BOTH_WAYS)
            clock->uncertainty = sum(uncertainty(&ranges[i], clock->offset), wider);
        else if (clock->known == DT_CLOCK_RECORDED && clock->offset)
            clock->known = DT_CLOCK_APART;
    }
    g_free(ranges);
    g_free(best.at);
}
