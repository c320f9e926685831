/* Cells of the report's tables. */
#ifndef DT_VIEWER_REPORT_CELLS_H
#define DT_VIEWER_REPORT_CELLS_H

#include "shared/columns.h"
#include "summary/summary.h"

void dt_cell_ns(struct dt_columns *c, int64_t ns);
void dt_cell_bytes(struct dt_columns *c, uint64_t bytes);
void dt_cell_words(struct dt_columns *c, uint64_t words);
void dt_cell_number(struct dt_columns *c, int64_t number);
void dt_cell_count(struct dt_columns *c, uint64_t number);
/* What is seldom: the table has a column for it if a row has some. */
void dt_cell_some(struct dt_columns *c, uint64_t number);
/* A time as seconds since the recording's begin. */
void dt_cell_time(struct dt_columns *c, const struct dt_summary *summary, int64_t time);
/* The number of its node, where there are several. */
void dt_cell_node(struct dt_columns *c, const struct dt_summary *summary,
                  const struct dt_seen_node *node);
void dt_cell_who(struct dt_columns *c, const struct dt_who *who);
/* With its node, if that is not the one of the row. */
void dt_cell_other(struct dt_columns *c, const struct dt_who *who, const struct dt_who *of_row);
/* The row is of the sender's node. */
void dt_cells_pair(struct dt_columns *c, const struct dt_summary *summary,
                   const struct dt_pair *pair);
/* Where many columns leave little room: the name alone, if it has one. */
void dt_cell_short(struct dt_columns *c, const struct dt_who *who);

#endif
