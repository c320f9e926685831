/* A sink made of several collectors: each event goes to those that have a function for it. */
#pragma once

#include "shared/sink.h"

enum { DT_COLLECTORS_MAX = 4 };

/* The first member of the sink's data: the collectors in calling order, each with its own data. */
struct dt_collectors {
    struct {
        const struct dt_sink *sink; /* NULL after the last one */
        void *data;
    } of[DT_COLLECTORS_MAX + 1];
};

/* The `collector` of such a sink. */
extern const struct dt_sink dt_collect_all;
