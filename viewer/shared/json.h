/*
 * JSON, appended to a string. The functions write the commas; `name` is NULL within an array.
 */
#ifndef DT_VIEWER_SHARED_JSON_H
#define DT_VIEWER_SHARED_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* The bracket's end is that of dt_json_close. */
void dt_json_open(GString *to, const char *name, char bracket);
void dt_json_close(GString *to, char bracket);

/* Valid UTF-8, whatever the text is, with `<`, `>` and `&` as escapes. NULL is "". */
void dt_json_text(GString *to, const char *name, const char *text);
/* DT_NO_VALUE is null. */
void dt_json_number(GString *to, const char *name, int64_t number);
void dt_json_boolean(GString *to, const char *name, bool is);
void dt_json_null(GString *to, const char *name);
/* What stands before a value, which the caller appends. */
void dt_json_name(GString *to, const char *name);

#endif
