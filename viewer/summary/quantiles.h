/*
 * Quantiles of many numbers in little memory: a histogram whose buckets grow with the value.
 *
 * Each power of two has 64 buckets, so a quantile has a relative error of at most 1/128. Numbers
 * below 128 are exact. Powers of two below the smallest and above the largest number take no
 * memory.
 */
#pragma once

#include <stdint.h>

struct dt_quantiles {
    uint64_t count, sum, min, max;
    uint32_t *buckets; /* of `powers` powers of two, from `first` on */
    unsigned first, powers;
};

void dt_quantiles_add(struct dt_quantiles *q, uint64_t number);
void dt_quantiles_merge(struct dt_quantiles *to, const struct dt_quantiles *from);
void dt_quantiles_clear(struct dt_quantiles *q);

/* The number with `share` of all at or below it: 0.5 is the median. DT_NO_VALUE if empty. */
int64_t dt_quantile(const struct dt_quantiles *q, double share);

/* With fewer numbers, the 99th percentile would be a single outlier. */
enum { DT_P99_NUMBERS = 100 };

/* The 99th percentile; DT_NO_VALUE for fewer than DT_P99_NUMBERS. */
int64_t dt_quantile_p99(const struct dt_quantiles *q);

/* The 99th percentile, or the largest of fewer numbers. */
int64_t dt_quantile_high(const struct dt_quantiles *q);

/* The limits between which the quantile of all possible numbers is, of which these are a sample,
   with 99.7 % confidence (three standard deviations of the rank). DT_NO_VALUE: there are too few
   numbers for that limit. */
int64_t dt_quantile_lower(const struct dt_quantiles *q, double share);
int64_t dt_quantile_upper(const struct dt_quantiles *q, double share);

/* The largest number; DT_NO_VALUE if empty. */
int64_t dt_quantiles_max(const struct dt_quantiles *q);
