/* Lines of the dump: a time, a kind and KEY=VALUE, in the format that dump_sink.c describes. */
#pragma once

#include "shared/file.h"
#include "shared/sink.h"

struct dt_lines {
    struct dt_file *file;
    GString *line;
    int64_t base; /* the first time; DT_NO_VALUE before the first event */
};

/* A part of a line. Items without a value, such as empty texts and false flags, are left out. */
struct dt_item {
    const char *name;
    enum { DT_NONE, DT_AT, DT_COUNT, DT_NAME, DT_TEXT, DT_ID, DT_FLAG } type;
    int64_t number;
    const char *text;
    const struct dt_process *process;
};

void dt_line_begin(struct dt_lines *lines, int64_t time, const char *kind);
/* Adds items; the last one has no name. */
void dt_line_add(struct dt_lines *lines, const struct dt_item *items);
void dt_line_end(struct dt_lines *lines);
