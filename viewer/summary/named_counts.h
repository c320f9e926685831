/* A bounded table of names: functions, spans, kinds of telemetry, counters. */
#pragma once

#include "summary/quantiles.h"
#include "summary/sample_series.h"
#include "summary/slices.h"

enum { DT_PER_MILLE = 1000, DT_FULL = 950 };

struct dt_named;

/* The time of a kind of span inside another one. */
struct dt_part {
    const struct dt_named *of;
    int64_t ns;
};

/* The row of a name, on a node or on none. */
struct dt_named {
    struct dt_seen_node *node;
    char *name, *unit;
    const char *key; /* of telemetry: struct dt_telemetry */
    uint64_t count, failed, inferred, measured;
    int64_t total, own;       /* ns; for a counter of shares, their sum */
    int64_t min, max, last;   /* for counters */
    double sum;               /* of the samples of a counter */
    struct dt_series *series; /* owned; of a counter, else NULL */
    /* For counters of shares: the first and last sample of the longest period in which it was at
       least DT_FULL, and the first one of the current period; DT_NO_VALUE: none. */
    int64_t full_begin, full_end, full_since;
    struct dt_quantiles took;
    struct dt_slices slices; /* of `count` */
    GArray *parts;           /* struct dt_part; of telemetry, else NULL */
};

struct dt_names {
    GHashTable *rows;
    struct dt_named *others; /* the sum of names beyond the bound */
};
void dt_names_init(struct dt_names *names);
void dt_names_free(struct dt_names *names);
struct dt_named *dt_names_row(struct dt_names *names, struct dt_seen_node *node, const char *name);
void dt_named_add_part(struct dt_named *row, const struct dt_named *of, int64_t ns);
/* The largest one; NULL without parts. */
const struct dt_part *dt_named_largest_part(const struct dt_named *row);
/* The row of a name, or NULL. */
const struct dt_named *dt_names_find(const struct dt_names *names, const struct dt_seen_node *node,
                                     const char *name);
GPtrArray *dt_names_sorted(const struct dt_names *names, GCompareFunc by); /* the caller frees it */
