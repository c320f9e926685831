#include "viewer/sink.h"

const struct dt_sink dt_sink_flame = {
    .name = "flame",
    .description = "folded stacks, or the JSON of speedscope",
};
