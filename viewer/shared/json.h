/*
 * Appends JSON to a string. The functions add commas; `name` is NULL within an array.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

/* `bracket` is the opening bracket; dt_json_close takes the closing one. */
void dt_json_open(GString *to, const char *name, char bracket);
void dt_json_close(GString *to, char bracket);

/* Always writes valid UTF-8, with `<`, `>` and `&` escaped. NULL counts as "". */
void dt_json_text(GString *to, const char *name, const char *text);
/* The same for output that is never part of a page: `<`, `>` and `&` stay as they are. */
void dt_json_raw_text(GString *to, const char *name, const char *text);
/* Writes DT_NO_VALUE as null. */
void dt_json_number(GString *to, const char *name, int64_t number);
void dt_json_boolean(GString *to, const char *name, bool is);
void dt_json_null(GString *to, const char *name);
/* Writes the comma and the name before a value that the caller appends. */
void dt_json_name(GString *to, const char *name);
