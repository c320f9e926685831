/* The timeline as JSON, which browser/data.js reads. */
#pragma once

#include "page/timeline.h"

/* Writes one object. Call it after the end of the model. */
void dt_page_data_json(struct dt_page_timeline *timeline, GString *to);
