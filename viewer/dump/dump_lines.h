/* Lines of the dump: a time, a kind and KEY=VALUE, in the format that dump_sink.c describes. */
#pragma once

#include "shared/file.h"
#include "shared/model_events.h"

struct dt_lines {
    struct dt_file *file;
    GString *line;
    int64_t base; /* the first time; DT_NO_VALUE before the first event */
};

void dt_line_begin(struct dt_lines *s, int64_t time, const char *kind);
void dt_line_at(struct dt_lines *s, const char *name, int64_t time);
void dt_line_number(struct dt_lines *s, const char *name, int64_t n);
void dt_line_word(struct dt_lines *s, const char *name, const char *text);
void dt_line_text(struct dt_lines *s, const char *name, const char *text);
void dt_line_process(struct dt_lines *s, const char *name, const struct dt_process *p);
void dt_line_flag(struct dt_lines *s, const char *name, bool is);
void dt_line_end(struct dt_lines *s);
