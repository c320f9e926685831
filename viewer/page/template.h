/* The template of the page, page.html beside the plugin's library, and the page made from it. */
#pragma once

#include "shared/file.h"

/* The text of the template; free with g_free. NULL with an error. */
char *dt_page_template_read(GError **error);
/* Writes the template with `json` in place of the placeholder. */
void dt_page_template_fill(const char *text, const GString *json, struct dt_file *to);
