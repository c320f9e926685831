/*
 * The bounds are a graph whose edge from A to B is the most that offset(A) - offset(B) may be; the
 * shortest path is the tightest bound. With all shortest paths, the middle between the bounds of
 * each clock against the reference keeps all bounds.
 *
 * A send may be told late, at most by the time since its sender's event before it. The likely
 * bounds are taken in the order of that time: each class if it agrees with what is sure and with
 * the classes before. What is sure gives the uncertainty in any case.
 *
 * A circle below 0 is a contradiction. Among sure bounds, clocks run at different speeds, or were
 * set meanwhile. Then all bounds are widened by the least time that resolves it, and so are the
 * uncertainties.
 */
#include "viewer/clocks_bounds.h"

#include <string.h>

#include <glib.h>

enum {
    /* The time for all paths is that number cubed. Without offsets, a recording of more clocks is
       shown as it is. */
    CLOCKS_MAX = 64,
    /* By how many binary digits the time has by which a send may have been told late, in ns. The
       last one is for 9 minutes or more, and where it isn't known. */
    CLASSES = 41,
};

/* Sums of two do not overflow. */
static const int64_t none = INT64_C(1) << 61, most = INT64_C(1) << 60;

struct matrix {
    unsigned n;
    int64_t *at; /* n * n */
};

struct dt_bounds {
    struct matrix sure, likely[CLASSES];
};

static struct matrix matrix_new(unsigned n) {
    struct matrix m = {n, g_new(int64_t, (gsize)n * n + 1)};

    for (unsigned i = 0; i < n * n; i++)
        m.at[i] = i % (n + 1) ? none : 0;
    return m;
}

struct dt_bounds *dt_bounds_new(unsigned clocks) {
    struct dt_bounds *b = g_new0(struct dt_bounds, 1);
    unsigned n = clocks <= CLOCKS_MAX ? clocks : 0;

    b->sure = matrix_new(n);
    for (unsigned i = 0; i < CLASSES; i++)
        b->likely[i] = matrix_new(n);
    return b;
}

void dt_bounds_free(struct dt_bounds *b) {
    g_free(b->sure.at);
    for (unsigned i = 0; i < CLASSES; i++)
        g_free(b->likely[i].at);
    g_free(b);
}

static int64_t *bound(const struct matrix *m, unsigned from, unsigned to) {
    return &m->at[from * m->n + to];
}

static void tighten(const struct matrix *m, unsigned from, unsigned to, int64_t ns) {
    *bound(m, from, to) = MIN(*bound(m, from, to), CLAMP(ns, -most, most));
}

static unsigned class_of(int64_t ns, int64_t sure) {
    int64_t late = CLAMP(sure, -most, most) - CLAMP(ns, -most, most);

    if (sure == DT_NO_VALUE)
        return CLASSES - 1;
    return late <= 0 ? 0 : MIN(64 - (unsigned)__builtin_clzll((uint64_t)late), CLASSES - 1);
}

void dt_bounds_add(struct dt_bounds *b, unsigned from, unsigned to, int64_t ns, int64_t sure) {
    if (from >= b->sure.n || to >= b->sure.n || from == to)
        return;
    tighten(&b->likely[class_of(ns, sure)], from, to, ns);
    if (sure != DT_NO_VALUE)
        tighten(&b->sure, from, to, sure);
}

static void tighten_all(const struct matrix *m, const struct matrix *by) {
    for (unsigned i = 0; i < m->n * m->n; i++)
        m->at[i] = MIN(m->at[i], by->at[i]);
}

/* Where nothing is sure, what is likely has to do. */
static void complete_sure(const struct dt_bounds *b) {
    struct matrix all = matrix_new(b->sure.n);

    for (unsigned i = 0; i < CLASSES; i++)
        tighten_all(&all, &b->likely[i]);
    for (unsigned i = 0; i < all.n * all.n; i++)
        if (b->sure.at[i] == none)
            b->sure.at[i] = all.at[i];
    g_free(all.at);
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

static void copy(const struct matrix *to, const struct matrix *from) {
    memcpy(to->at, from->at, (gsize)from->n * from->n * sizeof *from->at);
}

/* The sure bounds, and those of the likely ones that agree. */
static struct matrix best_bounds(const struct dt_bounds *b) {
    struct matrix best = matrix_new(b->sure.n), tried = matrix_new(b->sure.n);

    copy(&best, &b->sure);
    for (unsigned i = 0; i < CLASSES; i++) {
        copy(&tried, &best);
        tighten_all(&tried, &b->likely[i]);
        if (close_paths(&tried))
            copy(&best, &tried);
    }
    g_free(tried.at);
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
    complete_sure(b);
    wider = make_consistent(sure);
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
            clock->uncertainty = uncertainty(&r, clock->offset) + wider;
    }
    g_free(best.at);
}
