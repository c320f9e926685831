/*
 * A table as text, in aligned columns. If a table is wider than the terminal, texts are truncated:
 * those of '~' columns first, always in the widest column. Without a terminal, texts are whole: a
 * very long one moves the rest of its row to the right.
 */
#pragma once

#include <glib.h>

struct dt_columns;

/* `names` are the names of the columns, terminated by NULL. The first character of a name sets the
 * type: '<' is a left-aligned text, '~' is one that is truncated first; without either, the column
 * has right-aligned numbers. A column whose cells are all empty is omitted. */
struct dt_columns *dt_columns_new(const char *const *names);
#define DT_COLUMNS_OF(...)                                                                         \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* Add the next cell. A row ends with its last column. dt_columns_text escapes its text,
 * dt_columns_printf does not. */
void dt_columns_text(struct dt_columns *columns, const char *text);
void dt_columns_printf(struct dt_columns *columns, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Appends the table and frees it. `width`: at most this many columns; 0: unlimited. */
void dt_columns_end(struct dt_columns *columns, long width, GString *to);

/* Appends an escaped text: one line, without control characters, valid UTF-8. */
void dt_columns_escape(GString *to, const char *text);
