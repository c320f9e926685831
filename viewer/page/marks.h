/* Instants that the timeline shows as marks. */
#pragma once

#include <glib.h>

#include "shared/recorded.h"

/* Returns the name of a mark and appends its text; NULL if the event is not a mark. */
const char *dt_page_mark(const struct dt_recorded *event, GString *text);
