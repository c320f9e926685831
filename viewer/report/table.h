/* A table of the report. */
#ifndef DT_VIEWER_REPORT_TABLE_H
#define DT_VIEWER_REPORT_TABLE_H

#include "shared/columns.h"
#include "summary/rows.h"

struct dt_table {
    const char *title;
    dt_rows *rows;
    const char *const *columns;
    void (*cells)(struct dt_columns *, const struct dt_summary *, const void *row);
    bool (*is_dull)(const void *row); /* such rows are left out; NULL: all are shown */
    const char *without_dull;         /* ends the title where rows were left out */
};

/* The first `top` rows with their title; without rows nothing. */
void dt_table_put(GString *to, const struct dt_summary *summary, unsigned top,
                  const struct dt_table *table);
/* The same with these rows. */
void dt_table_put_rows(GString *to, const struct dt_summary *summary, unsigned top,
                       const struct dt_table *table, GPtrArray *rows);

#endif
