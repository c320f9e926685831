/*
 * The bounds are a graph whose edge from A to B is the most that offset(A) - offset(B) may be; the
 * shortest path is the tightest bound. With all shortest paths, the middle between the bounds of
 * each clock against the reference keeps all bounds.
 *
 * A send may be told late, at most by the time since its sender's event before it. The likely
 * bounds are taken in the order of that time: each if it agrees with what is sure and with those
 * before it. What is sure gives the uncertainty in any case.
 *
 * A circle below 0 is a contradiction. Among sure bounds, clocks run at different speeds, or were
 * set meanwhile. Then all sure bounds are widened by the least time that resolves it, and so are
 * the uncertainties.
 */
#include "viewer/clocks_bounds.h"

#include <glib.h>

enum {
    /* The time for all paths is that number cubed. Without offsets, a recording of more clocks is
       shown as it is. */
    CLOCKS_MAX = 64,
};

/* 146 years. Sums of two do not overflow. */
static const int64_t none = INT64_MAX, most = INT64_MAX / 2;

struct matrix {
    unsigned n;
    int64_t *at; /* n * n */
};

/* offset(from) - offset(to) <= ns, if the send was told in time. */
struct likely {
    unsigned from, to;
    int64_t ns;
    int64_t late; /* the most by which it was told late; `unknown` */
};

static const int64_t unknown = INT64_MAX;

struct dt_bounds {
    struct matrix sure;
    GArray *likely;
};

static struct matrix matrix_new(unsigned n) {
    struct matrix m = {n, g_new(int64_t, (gsize)n * n + 1)};

    for (unsigned i = 0; i < n * n; i++)
        m.at[i] = i % (n + 1) ? none : 0;
    return m;
}

static struct matrix matrix_copy(const struct matrix *m) {
    return (struct matrix){m->n, g_memdup2(m->at, ((gsize)m->n * m->n + 1) * sizeof *m->at)};
}

struct dt_bounds *dt_bounds_new(unsigned clocks) {
    struct dt_bounds *b = g_new0(struct dt_bounds, 1);

    b->sure = matrix_new(clocks <= CLOCKS_MAX ? clocks : 0);
    b->likely = g_array_new(FALSE, FALSE, sizeof(struct likely));
    return b;
}

void dt_bounds_free(struct dt_bounds *b) {
    g_free(b->sure.at);
    g_array_free(b->likely, TRUE);
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

/* False for a contradiction. */
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

/* With all bounds wider by so much. */
static bool is_consistent(const struct matrix *m, const int64_t *given, int64_t wider) {
    for (unsigned i = 0; i < m->n * m->n; i++)
        m->at[i] = i % (m->n + 1) ? sum(given[i], wider) : 0;
    return close_paths(m);
}

/* Widens them as far as they contradict each other, and closes the paths. Returns by how much. */
static int64_t make_consistent(const struct matrix *m) {
    int64_t *given = g_memdup2(m->at, (gsize)m->n * m->n * sizeof *m->at);
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

/* The least late first; of those, the one that bounds least. The rest makes the order the same each
   time. */
static gint compare_likely(gconstpointer a, gconstpointer b) {
    const struct likely *x = a, *y = b;

    if (x->late != y->late)
        return x->late < y->late ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Where nothing is sure, not over others either, what is likely has to do. Returns by how much the
   sure bounds were widened. */
static int64_t make_sure(const struct dt_bounds *b) {
    int64_t wider = make_consistent(&b->sure);
    struct matrix before = matrix_copy(&b->sure);

    for (guint i = 0; i < b->likely->len; i++) {
        const struct likely *l = &g_array_index(b->likely, struct likely, i);

        if (*bound(&before, l->from, l->to) == none)
            tighten(&b->sure, l->from, l->to, l->ns);
    }
    g_free(before.at);
    return sum(wider, make_consistent(&b->sure));
}

/* False if it contradicts the others, whose paths are closed. */
static bool agrees(const struct matrix *m, const struct likely *l) {
    return sum(l->ns, *bound(m, l->to, l->from)) >= 0;
}

/* Closes the paths over this bound. */
static void take(const struct matrix *m, const struct likely *l) {
    for (unsigned i = 0; i < m->n; i++)
        for (unsigned j = 0; j < m->n; j++)
            tighten(m, i, j, sum(sum(*bound(m, i, l->from), l->ns), *bound(m, l->to, j)));
}

/* The sure bounds, and those of the likely ones that agree. */
static struct matrix best_bounds(const struct dt_bounds *b) {
    struct matrix best = matrix_copy(&b->sure);

    g_array_sort(b->likely, compare_likely);
    for (guint i = 0; i < b->likely->len; i++) {
        const struct likely *l = &g_array_index(b->likely, struct likely, i);

        if (l->ns < *bound(&best, l->from, l->to) && agrees(&best, l))
            take(&best, l);
    }
    return best;
}

/* What the bounds against the reference allow: at least, at most; `none` of a side without any. */
struct range {
    int64_t least, most;
};

static struct range range_of(const struct matrix *m, unsigned clock) {
    int64_t to = *bound(m, clock, 0), from = *bound(m, 0, clock);

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

static void fix(const struct matrix *m, unsigned clock, int64_t offset) {
    *bound(m, clock, 0) = offset;
    *bound(m, 0, clock) = -offset;
    close_paths(m);
}

/* Sets the offsets of clocks that are known so. */
static void fix_known(const struct matrix *m, struct dt_clocks *clocks, enum dt_clock_known how) {
    for (unsigned i = 1; i < m->n; i++) {
        struct dt_clock *clock = dt_clocks_nth(clocks, i);
        struct range r = range_of(m, i);

        if (clock->known != how)
            continue;
        clock->offset = choose(&r);
        fix(m, i, clock->offset);
    }
}

/* How far the true offset may be from this one. */
static int64_t uncertainty(const struct range *sure, int64_t offset) {
    return MAX(sure->most - offset, offset - sure->least);
}

void dt_bounds_solve(struct dt_bounds *b, struct dt_clocks *clocks) {
    const struct matrix *sure = &b->sure;
    struct matrix best;
    int64_t wider;

    if (!sure->n)
        return;
    wider = make_sure(b);
    best = best_bounds(b);
    dt_clocks_nth(clocks, 0)->known = DT_CLOCK_REFERENCE;
    for (unsigned i = 1; i < best.n; i++) {
        struct range r = range_of(&best, i);

        dt_clocks_nth(clocks, i)->known = known(&r);
    }
    fix_known(&best, clocks, DT_CLOCK_BOTH_WAYS);
    fix_known(&best, clocks, DT_CLOCK_ONE_WAY);
    fix_known(&best, clocks, DT_CLOCK_RECORDED);
    for (unsigned i = 1; i < sure->n; i++) {
        struct dt_clock *clock = dt_clocks_nth(clocks, i);
        struct range r = range_of(sure, i);

        if (clock->known == DT_CLOCK_BOTH_WAYS)
            clock->uncertainty = sum(MIN(uncertainty(&r, clock->offset), most), wider);
        else if (clock->known == DT_CLOCK_RECORDED && clock->offset)
            clock->known = DT_CLOCK_APART;
    }
    g_free(best.at);
}
