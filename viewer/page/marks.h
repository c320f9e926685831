/* Instants that the timeline shows as marks. */
#ifndef DT_VIEWER_PAGE_MARKS_H
#define DT_VIEWER_PAGE_MARKS_H

#include <glib.h>

#include "shared/model_events.h"

/* Returns the name of a mark and appends its text; NULL if the instant is not a mark. */
const char *dt_page_mark(const struct dt_instant *instant, GString *text);

#endif
