/*
 * Quantiles of many numbers in little memory: a histogram whose buckets grow with the value.
 *
 * Each power of two has 64 buckets, so a quantile differs from the exact one by at most 1/128 of
 * it. Numbers below 128 are exact. A power of two that has no number costs nothing below the
 * smallest and above the largest one.
 */
#ifndef DT_VIEWER_SUMMARY_QUANTILES_H
#define DT_VIEWER_SUMMARY_QUANTILES_H

#include <stdint.h>

struct dt_quantiles {
    uint64_t count, sum, min, max;
    uint32_t *buckets; /* of `powers` powers of two, from `first` on */
    unsigned first, powers;
};

void dt_quantiles_add(struct dt_quantiles *q, uint64_t number);
void dt_quantiles_merge(struct dt_quantiles *to, const struct dt_quantiles *from);
void dt_quantiles_clear(struct dt_quantiles *q);

/* The number with `share` of all at or below it: share 0.5 is the median. DT_NO_VALUE of none. */
int64_t dt_quantile(const struct dt_quantiles *q, double share);

/* With fewer numbers, the one of a hundred that is larger than the others is an accident. */
enum { DT_P99_NUMBERS = 100 };

/* The quantile of 0.99; DT_NO_VALUE of fewer numbers. */
int64_t dt_quantile_p99(const struct dt_quantiles *q);

/* The same, and of fewer numbers the largest. */
int64_t dt_quantile_high(const struct dt_quantiles *q);

/* The largest number, and DT_NO_VALUE of none. */
int64_t dt_quantiles_max(const struct dt_quantiles *q);

#endif
