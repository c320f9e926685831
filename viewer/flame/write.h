/* Flame graphs as files of other tools: docs/report.md names them. */
#ifndef DT_VIEWER_FLAME_WRITE_H
#define DT_VIEWER_FLAME_WRITE_H

#include "shared/file.h"
#include "stacks/stacks.h"

/* A line per stack: its frames with ';' between them, a space, ns. */
void dt_flame_folded(const struct dt_stacks *stacks, struct dt_file *to);

/* The JSON of speedscope: a profile of samples with their weights. */
void dt_flame_speedscope(const struct dt_stacks *stacks, const char *name, struct dt_file *to);

#endif
