/* A table of the report. */
#pragma once

#include "shared/columns.h"
#include "summary/sorted_rows.h"

struct dt_table {
    const char *title;
    dt_rows *rows;
    const char *const *columns;
    void (*cells)(struct dt_columns *, const struct dt_summary *, const void *row);
    bool (*is_dull)(const void *row); /* rows to leave out; NULL: show all */
    const char *without_dull;         /* end of the title if rows were left out */
};

/* Prints the title and the first `top` rows; without rows, nothing. */
void dt_table_put(GString *to, const struct dt_summary *summary, unsigned top,
                  const struct dt_table *table);
/* The same for the given rows. */
void dt_table_put_rows(GString *to, const struct dt_summary *summary, unsigned top,
                       const struct dt_table *table, GPtrArray *rows);
