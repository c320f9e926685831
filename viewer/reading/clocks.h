/* The clocks of a recording: usually one for each host. */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "shared/recorded.h"

struct dt_clocks;

struct dt_clocks *dt_clocks_new(void);
void dt_clocks_free(struct dt_clocks *clocks);

struct dt_clock *dt_clocks_of(struct dt_clocks *clocks, const bt_stream *stream);
struct dt_clock *dt_clocks_nth(const struct dt_clocks *clocks, unsigned number);
/* Numbers the known clocks in the order of their hosts, because streams are in no order. */
void dt_clocks_sort(struct dt_clocks *clocks);
unsigned dt_clocks_count(const struct dt_clocks *clocks);

/* Whether there are several clocks. */
static inline bool dt_clocks_differ(const struct dt_clocks *clocks) {
    return dt_clocks_count(clocks) > 1;
}
