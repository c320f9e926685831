/*
 * Messages in the order of corrected times. babeltrace2 merges traces by their own clocks. Messages
 * wait here until no other clock can have an earlier one: as long as the largest and the smallest
 * offset differ.
 */
#ifndef DT_VIEWER_READING_ORDER_H
#define DT_VIEWER_READING_ORDER_H

#include "reading/clocks.h"

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
