/* Texts, each once, by number. The number 0 is the empty text. */
#ifndef DT_VIEWER_HTML_STRINGS_H
#define DT_VIEWER_HTML_STRINGS_H

#include <stdint.h>

#include <glib.h>

struct dt_strings;

/* Texts beyond `most` get the number 0: those of a recording may all differ. */
struct dt_strings *dt_strings_new(unsigned most);
void dt_strings_free(struct dt_strings *strings);
uint32_t dt_strings_number(struct dt_strings *strings, const char *text);
const char *dt_strings_text(const struct dt_strings *strings, uint32_t number);
/* All of them as the JSON array "strings". */
void dt_strings_json(const struct dt_strings *strings, GString *to);

#endif
