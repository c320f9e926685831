/*
 * Flat rows as lines of JSON. Columns without a value are left out.
 *
 *     dt_row_begin(rows, node, DT_ROW_call, time);
 *     dt_row_text(rows, DT_COLUMN_function, "lists:sort/1");
 *     dt_row_end(rows);
 *
 * The columns are those of priv/python/dyntrace_command/common/row_columns.tsv.
 *
 * A recording names its node some time after its first events. Until all nodes have a name, rows
 * are held in memory, up to a limit.
 */
#pragma once

#include "shared/file.h"
#include "shared/model_events.h"

enum dt_column {
#define COLUMN(name) DT_COLUMN_##name,
#include "rows/columns.h"
#undef COLUMN
    DT_COLUMNS
};

#define DT_EACH_ROW_KIND(KIND)                                                                     \
    KIND(process)                                                                                  \
    KIND(interval)                                                                                 \
    KIND(message)                                                                                  \
    KIND(call)                                                                                     \
    KIND(server_call)                                                                              \
    KIND(span)                                                                                     \
    KIND(sample)                                                                                   \
    KIND(counter)                                                                                  \
    KIND(lost)                                                                                     \
    KIND(finding)                                                                                  \
    KIND(snapshot)

enum dt_row_kind {
#define KIND(name) DT_ROW_##name,
    DT_EACH_ROW_KIND(KIND)
#undef KIND
};

struct dt_row_lines;

/* The texts are the values of these columns for all rows. NULL with an error if the file can't be
   opened. */
struct dt_row_lines *dt_row_lines_open(const char *path, const char *recording, const char *release,
                                       GError **error);
bool dt_row_lines_close(struct dt_row_lines *rows, GError **error);
void dt_row_lines_free(struct dt_row_lines *rows);
const GError *dt_row_lines_failed(const struct dt_row_lines *rows);

/* A new node, or a new name of a node. Uses its `of_sink`. */
void dt_row_lines_node(struct dt_row_lines *rows, struct dt_node *node);

/* Begins a row; `node` may be NULL. */
void dt_row_begin(struct dt_row_lines *rows, const struct dt_node *node, enum dt_row_kind kind,
                  int64_t time);
/* After the end of the model: begins a row of a node with these texts. */
void dt_row_begin_late(struct dt_row_lines *rows, const char *node, const char *otp,
                       enum dt_row_kind kind, int64_t time);
void dt_row_text(struct dt_row_lines *rows, enum dt_column column,
                 const char *text); /* NULL, "": none */
void dt_row_number(struct dt_row_lines *rows, enum dt_column column, int64_t number);
void dt_row_flag(struct dt_row_lines *rows, enum dt_column column, bool is);
/* The time between two times; nothing if one of them is DT_NO_VALUE. */
void dt_row_duration(struct dt_row_lines *rows, enum dt_column column, int64_t begin, int64_t end);
/* Columns that dt_column_text and dt_column_number have formatted. */
void dt_row_columns(struct dt_row_lines *rows, const GString *columns);
void dt_row_end(struct dt_row_lines *rows);

void dt_column_text(GString *to, enum dt_column column, const char *text);
void dt_column_number(GString *to, enum dt_column column, int64_t number);
