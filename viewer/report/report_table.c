#include "report/report_table.h"

/* Returns whether there were any such rows. */
static bool leave_out(GPtrArray *rows, bool (*is_dull)(const void *row)) {
    unsigned all = rows->len, n = 0;

    for (unsigned i = 0; i < all; i++)
        if (!is_dull(g_ptr_array_index(rows, i)))
            g_ptr_array_index(rows, n++) = g_ptr_array_index(rows, i);
    g_ptr_array_set_size(rows, (int)n);
    return n < all;
}

/* The number of rows to print. */
static unsigned shown(const struct dt_table *table, const GPtrArray *rows, unsigned top) {
    unsigned n = MIN(top, rows->len);

    while (table->is_first && n < rows->len && table->is_first(g_ptr_array_index(rows, n)))
        n++;
    return n;
}

void dt_table_put_rows(GString *to, const struct dt_summary *summary, struct dt_text_size size,
                       const struct dt_table *table, GPtrArray *rows) {
    bool has_dull = table->is_dull && leave_out(rows, table->is_dull);

    if (!rows->len)
        return;
    g_string_append_printf(to, "\n%s%s", table->title, has_dull ? table->without_dull : "");
    unsigned n = shown(table, rows, size.rows);
    if (rows->len > n)
        g_string_append_printf(to, " (%u of %u)", n, rows->len);
    g_string_append_c(to, '\n');
    struct dt_columns *c = dt_columns_new(table->columns);
    for (unsigned i = 0; i < n; i++)
        table->cells(c, summary, g_ptr_array_index(rows, i));
    dt_columns_end(c, size.width, to);
}

void dt_table_put(GString *to, const struct dt_summary *summary, struct dt_text_size size,
                  const struct dt_table *table) {
    g_autoptr(GPtrArray) rows = table->rows(summary);

    dt_table_put_rows(to, summary, size, table, rows);
}
