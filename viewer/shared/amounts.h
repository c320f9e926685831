/* Human-readable numbers: times and sizes with three digits and a unit. */
#pragma once

#include <stdint.h>

#include "shared/recorded.h"

/* A text for one expression: dt_show_ns(ns).text. */
struct dt_amount {
    char text[32];
};

struct dt_amount dt_show_ns(int64_t ns); /* "" for DT_NO_VALUE */
struct dt_amount dt_show_bytes(uint64_t bytes);
struct dt_amount dt_show_share(double share); /* 0.5: "50 %" */
/* "+1.20 ms ± 30.0 µs"; "" without a clock. To be freed by g_free. */
char *dt_show_clock(const struct dt_clock *clock);
