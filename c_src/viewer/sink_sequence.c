#include "viewer/sink.h"

const struct dt_sink dt_sink_sequence = {
    .name = "sequence",
    .description = "the messages between processes, for Mermaid",
};
