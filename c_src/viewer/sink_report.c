#include "viewer/sink.h"

const struct dt_sink dt_sink_report = {
    .name = "report",
    .description = "what the recording says, as text or JSON",
};
