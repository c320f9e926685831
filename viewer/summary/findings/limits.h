/*
 * The limits of the rules, from rules.def. Some of them also control what the summary collects.
 */
#pragma once

#include <stdint.h>

/* The units of limits: the type of the limit, and its size in the unit of the code. */
#define DT_NS_PER_US INT64_C(1000)
#define DT_NS_PER_MS INT64_C(1000000)
#define DT_NS_PER_S INT64_C(1000000000)
typedef uint64_t dt_NUMBER;
#define DT_UNIT_NUMBER 1
typedef uint64_t dt_MB; /* bytes */
#define DT_UNIT_MB 1000000
typedef uint64_t dt_KB; /* bytes */
#define DT_UNIT_KB 1000
typedef double dt_PER_SECOND;
#define DT_UNIT_PER_SECOND 1
typedef double dt_KB_PER_SECOND; /* bytes */
#define DT_UNIT_KB_PER_SECOND 1000
typedef int64_t dt_TIMES;
#define DT_UNIT_TIMES 1
typedef int64_t dt_PERCENT;
#define DT_UNIT_PERCENT 1
typedef int64_t dt_NS;
#define DT_UNIT_NS 1
typedef int64_t dt_MS; /* ns */
#define DT_UNIT_MS DT_NS_PER_MS
typedef int64_t dt_SECONDS; /* ns */
#define DT_UNIT_SECONDS DT_NS_PER_S
typedef int64_t dt_MINUTES; /* ns */
#define DT_UNIT_MINUTES (60 * DT_NS_PER_S)

/* dt_limits.slow_server.call is 10 ms, in ns. */
struct dt_limits {
#define LIMIT(name, number, unit, meaning) dt_##unit name;
#define RULE(name, about, severity, looks_at, evidence, limits, why, next, example)                \
    struct {                                                                                       \
        limits                                                                                     \
    } name;
#include "summary/findings/rules.def"
};
extern const struct dt_limits dt_limits;
