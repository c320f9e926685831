#include "viewer/sink.h"

const struct dt_sink dt_sink_html = {
    .name = "html",
    .description = "a page with everything",
};
