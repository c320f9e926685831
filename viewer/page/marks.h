/* Instants that the timeline shows as marks. */
#ifndef DT_VIEWER_PAGE_MARKS_H
#define DT_VIEWER_PAGE_MARKS_H

#include <glib.h>

#include "shared/recorded.h"

/* The name of a mark, and its text; NULL: the event is none. */
const char *dt_page_mark(const struct dt_recorded *event, GString *text);

#endif
