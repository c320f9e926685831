/*
 * Sorts messages by corrected time. babeltrace2 merges traces by their uncorrected clocks. Messages
 * wait here until no other clock can have an earlier one, which takes at most the difference
 * between the largest and the smallest offset.
 */
#pragma once

#include "reading/clocks.h"

struct dt_order;

/* `next` receives a reference to each message. */
struct dt_order *dt_order_new(struct dt_clocks *clocks,
                              void (*next)(void *data, const bt_message *message), void *data);
/* Takes over the reference. */
void dt_order_add(struct dt_order *order, const bt_message *message);
/* There are no more messages: passes on the waiting ones. */
void dt_order_end(struct dt_order *order);
void dt_order_free(struct dt_order *order);
