/*
 * The clocks of a recording: traces of one host have one. And its events in the order of corrected
 * times.
 */
#ifndef DT_VIEWER_CLOCKS_H
#define DT_VIEWER_CLOCKS_H

#include <babeltrace2/babeltrace.h>

#include "viewer/recorded.h"

struct dt_clocks;

struct dt_clocks *dt_clocks_new(uint64_t mip_version);
void dt_clocks_free(struct dt_clocks *clocks);

/* The clock of a stream. */
struct dt_clock *dt_clocks_of(struct dt_clocks *clocks, const bt_stream *stream);
struct dt_clock *dt_clocks_nth(const struct dt_clocks *clocks, unsigned number);
/* Numbers those that are known by their hosts: streams come in no order. */
void dt_clocks_sort(struct dt_clocks *clocks);
unsigned dt_clocks_count(const struct dt_clocks *clocks);

/* Whether there are several. */
static inline bool dt_clocks_differ(const struct dt_clocks *clocks) {
    return dt_clocks_count(clocks) > 1;
}

/* -- Order ---------------------------------------------------------------------------- */

/* babeltrace2 merges traces by their own clocks. Messages wait here until no other clock can have
   an earlier one: as long as the largest and the smallest offset differ. */
struct dt_order;

/* `next` gets a reference of each message. */
struct dt_order *dt_order_new(struct dt_clocks *clocks,
                              void (*next)(void *data, const bt_message *message), void *data);
/* Takes over the reference. */
void dt_order_add(struct dt_order *order, const bt_message *message);
/* No more come. */
void dt_order_end(struct dt_order *order);
void dt_order_free(struct dt_order *order);

#endif
