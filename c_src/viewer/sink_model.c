#include "viewer/sink.h"

const struct dt_sink dt_sink_model = {
    .name = "model",
    .description = "what the model tells, a line for each: to test it",
};
