#include "viewer/sink.h"

const struct dt_sink dt_sink_perfetto = {
    .name = "perfetto",
    .description = "a trace for ui.perfetto.dev",
};
