/* The summary as text. */
#pragma once

#include "summary/summary.h"

/* How much the text shows. */
struct dt_text_size {
    unsigned rows; /* per table, at most */
    long width;    /* of a table, in columns; 0: unlimited */
};

void dt_report_text(const struct dt_summary *summary, struct dt_text_size size, GString *to);

/* The tables of processes, one per sort criterion. */
void dt_report_processes(GString *to, const struct dt_summary *summary, struct dt_text_size size);
