/* Flame graphs in the file formats of other tools, which docs/report.md names. */
#pragma once

#include "shared/file.h"
#include "stacks/stacks.h"

/* One line per stack: its frames, separated by ';', a space, ns. */
void dt_flame_folded(const struct dt_stacks *stacks, struct dt_file *to);

/* JSON for speedscope: a profile of weighted samples. */
void dt_flame_speedscope(const struct dt_stacks *stacks, const char *name, struct dt_file *to);
