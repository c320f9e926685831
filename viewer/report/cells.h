/* Cells of the report's tables. */
#pragma once

#include "shared/columns.h"
#include "summary/summary.h"

void dt_cell_ns(struct dt_columns *c, int64_t ns);
/* A duration that is rarely above 0: else the cell is empty. */
void dt_cell_some_ns(struct dt_columns *c, int64_t ns);
void dt_cell_bytes(struct dt_columns *c, uint64_t bytes);
void dt_cell_words(struct dt_columns *c, uint64_t words);
void dt_cell_number(struct dt_columns *c, int64_t number);
void dt_cell_count(struct dt_columns *c, uint64_t number);
/* A rare number: the table has the column only if a row is not 0. */
void dt_cell_some(struct dt_columns *c, uint64_t number);
/* A time, in seconds from the begin of the recording. */
void dt_cell_time(struct dt_columns *c, const struct dt_summary *summary, int64_t time);
/* The number of the node, if there are several nodes. */
void dt_cell_node(struct dt_columns *c, const struct dt_summary *summary,
                  const struct dt_seen_node *node);
void dt_cell_actor(struct dt_columns *c, const struct dt_actor *actor);
/* With the process's node, if it differs from the node of the row. */
void dt_cell_other(struct dt_columns *c, const struct dt_actor *actor,
                   const struct dt_actor *of_row);
/* The node of the row is the sender's. */
void dt_cells_pair(struct dt_columns *c, const struct dt_summary *summary,
                   const struct dt_pair *pair);
/* A term of a pair. */
void dt_cell_term(struct dt_columns *c, const struct dt_pair *pair, const char *term);
/* For tables with many columns: the name alone, if the process has one. */
void dt_cell_short(struct dt_columns *c, const struct dt_actor *actor);
