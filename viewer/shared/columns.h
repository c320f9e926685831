/*
 * A table for a terminal: aligned columns, at most DT_COLUMNS wide. A table that is too wide has
 * texts cut: first those that give way, always the widest one.
 */
#ifndef DT_VIEWER_SHARED_COLUMNS_H
#define DT_VIEWER_SHARED_COLUMNS_H

#include <glib.h>

enum { DT_COLUMNS = 120 };

struct dt_columns;

/* The columns' names, up to NULL. A name that starts with '<' or '~' is that of a text, which
 * stands on the left; with '~' it gives way to the others. Names without these are those of
 * numbers, which stand on the right. A column that has nothing in any row is left out. */
struct dt_columns *dt_columns_new(const char *const *names);
#define DT_COLUMNS_OF(...)                                                                         \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* The next cell of the row; the row ends with its last column. Texts of a recording are escaped;
 * what is formatted is not. */
void dt_columns_text(struct dt_columns *columns, const char *text);
void dt_columns_printf(struct dt_columns *columns, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Appends the table and frees it. */
void dt_columns_end(struct dt_columns *columns, GString *to);

/* Appends a text of a recording: one line, without control characters, valid UTF-8. */
void dt_columns_escape(GString *to, const char *text);

#endif
