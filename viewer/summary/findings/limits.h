/*
 * The limits of the rules, from rules.def. Some of them also control what the summary collects.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The units of limits, in the units of the code. */
#define DT_UNIT_NUMBER INT64_C(1)
#define DT_UNIT_TIMES INT64_C(1)
#define DT_UNIT_PERCENT INT64_C(1)
#define DT_UNIT_NS INT64_C(1)
#define DT_UNIT_MS INT64_C(1000000)
#define DT_UNIT_SECONDS INT64_C(1000000000)
#define DT_UNIT_MB INT64_C(1000000)

/* dt_limits.slow_server.call is 10 ms, in ns. */
struct dt_limits {
#define LIMIT(name, number, unit, meaning) int64_t name;
#define RULE(name, about, severity, looks_at, limits, why, next)                                   \
    struct {                                                                                       \
        limits                                                                                     \
    } name;
#include "summary/findings/rules.def"
};
extern const struct dt_limits dt_limits;
