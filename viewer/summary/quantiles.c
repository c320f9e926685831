#include "summary/quantiles.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#include "shared/recorded.h"

enum { BITS = 6, PER_POWER = 1 << BITS };

/* Power 0 has the numbers below 64, power n those from 2^(n+5) to 2^(n+6)-1. */
static unsigned power_of(uint64_t number) {
    return number < PER_POWER ? 0 : 64 - (unsigned)__builtin_clzll(number) - BITS;
}

static unsigned bucket_in(unsigned power, uint64_t number) {
    return power == 0 ? (unsigned)number : (unsigned)(number >> (power - 1)) - PER_POWER;
}

static uint64_t middle_of(unsigned power, unsigned bucket) {
    if (power == 0)
        return bucket;
    uint64_t width = UINT64_C(1) << (power - 1);
    return (uint64_t)(bucket + PER_POWER) * width + width / 2;
}

static void reserve(struct dt_quantiles *q, unsigned power) {
    if (q->powers && power >= q->first && power < q->first + q->powers)
        return;
    unsigned first = q->powers ? MIN(q->first, power) : power;
    unsigned end = q->powers ? MAX(q->first + q->powers, power + 1) : power + 1;
    uint32_t *buckets = g_new0(uint32_t, (size_t)(end - first) * PER_POWER);
    if (q->powers)
        memcpy(buckets + (size_t)(q->first - first) * PER_POWER, q->buckets,
               sizeof *buckets * q->powers * PER_POWER);
    g_free(q->buckets);
    q->buckets = buckets;
    q->first = first;
    q->powers = end - first;
}

static uint32_t *bucket_of(struct dt_quantiles *q, unsigned power, unsigned bucket) {
    reserve(q, power);
    return &q->buckets[(size_t)(power - q->first) * PER_POWER + bucket];
}

static void add_up(uint32_t *to, uint32_t more) {
    *to = *to > UINT32_MAX - more ? UINT32_MAX : *to + more;
}

void dt_quantiles_add(struct dt_quantiles *q, uint64_t number) {
    unsigned power = power_of(number);

    add_up(bucket_of(q, power, bucket_in(power, number)), 1);
    q->min = q->count ? MIN(q->min, number) : number;
    q->max = MAX(q->max, number);
    q->sum += number;
    q->count++;
}

void dt_quantiles_merge(struct dt_quantiles *to, const struct dt_quantiles *from) {
    if (!from->count)
        return;
    for (unsigned i = 0; i < from->powers * PER_POWER; i++)
        if (from->buckets[i])
            add_up(bucket_of(to, from->first + i / PER_POWER, i % PER_POWER), from->buckets[i]);
    to->min = to->count ? MIN(to->min, from->min) : from->min;
    to->max = MAX(to->max, from->max);
    to->sum += from->sum;
    to->count += from->count;
}

void dt_quantiles_clear(struct dt_quantiles *q) {
    g_free(q->buckets);
    *q = (struct dt_quantiles){0};
}

int64_t dt_quantile(const struct dt_quantiles *q, double share) {
    if (!q->count)
        return DT_NO_VALUE;
    double exact = share * (double)q->count;
    uint64_t rank = (uint64_t)exact, seen = 0;
    if ((double)rank < exact)
        rank++;
    for (unsigned i = 0; i < q->powers * PER_POWER; i++) {
        seen += q->buckets[i];
        if (seen >= rank && q->buckets[i])
            return (int64_t)CLAMP(middle_of(q->first + i / PER_POWER, i % PER_POWER), q->min,
                                  q->max);
    }
    return (int64_t)q->max;
}

static int64_t limit(const struct dt_quantiles *q, double share, double deviations) {
    double at = share + deviations * sqrt(share * (1 - share) / (double)MAX(q->count, 1));

    return at > 0 && at < 1 ? dt_quantile(q, at) : DT_NO_VALUE;
}

int64_t dt_quantile_lower(const struct dt_quantiles *q, double share) {
    return limit(q, share, -3);
}

int64_t dt_quantile_upper(const struct dt_quantiles *q, double share) {
    return limit(q, share, 3);
}

int64_t dt_quantiles_max(const struct dt_quantiles *q) {
    return q->count ? (int64_t)q->max : DT_NO_VALUE;
}

int64_t dt_quantile_p99(const struct dt_quantiles *q) {
    return q->count >= DT_P99_NUMBERS ? dt_quantile(q, 0.99) : DT_NO_VALUE;
}

int64_t dt_quantile_high(const struct dt_quantiles *q) {
    return q->count >= DT_P99_NUMBERS ? dt_quantile_p99(q) : dt_quantiles_max(q);
}
