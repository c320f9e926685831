/* A table of the report. */
#pragma once

#include "report/report_text.h"
#include "shared/columns.h"
#include "summary/sorted_rows.h"

struct dt_table {
    const char *title;
    dt_rows *rows;
    const char *const *columns;
    void (*cells)(struct dt_columns *, const struct dt_summary *, const void *row);
    bool (*is_dull)(const void *row);  /* rows to leave out; NULL: show all */
    const char *without_dull;          /* end of the title if rows were left out */
    bool (*is_first)(const void *row); /* rows at the start that are all printed; NULL: none */
};

/* Prints the title and the first rows; without rows, nothing. */
void dt_table_put(GString *to, const struct dt_summary *summary, struct dt_text_size size,
                  const struct dt_table *table);
/* The same for the given rows. */
void dt_table_put_rows(GString *to, const struct dt_summary *summary, struct dt_text_size size,
                       const struct dt_table *table, GPtrArray *rows);
