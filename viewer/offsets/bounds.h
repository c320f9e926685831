/*
 * Offsets of clocks within bounds on their differences.
 */
#pragma once

#include "reading/clocks.h"

struct dt_bounds;

struct dt_bounds *dt_bounds_new(unsigned clocks);
/* offset(from) - offset(to) <= ns, most likely, and <= `sure` in any case. DT_NO_VALUE: nothing is
   sure. */
void dt_bounds_add(struct dt_bounds *bounds, unsigned from, unsigned to, int64_t ns, int64_t sure);
/* Sets the clocks' offsets. The clock with the number 0 is the reference. */
void dt_bounds_solve(struct dt_bounds *bounds, struct dt_clocks *clocks);
void dt_bounds_free(struct dt_bounds *bounds);
