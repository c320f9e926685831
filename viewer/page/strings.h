/* Distinct texts by number. Number 0 is the empty text. */
#pragma once

#include <stdint.h>

#include <glib.h>

struct dt_page_strings;

/* Texts beyond `most` get the number 0, because all texts of a recording may differ. */
struct dt_page_strings *dt_page_strings_new(unsigned most);
void dt_page_strings_free(struct dt_page_strings *strings);
uint32_t dt_page_strings_number(struct dt_page_strings *strings, const char *text);
const char *dt_page_strings_text(const struct dt_page_strings *strings, uint32_t number);
/* All texts, as the JSON array "strings". */
void dt_page_strings_json(const struct dt_page_strings *strings, GString *to);
