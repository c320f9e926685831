/*
 * How much clocks differ, from the messages between nodes: no message is delivered before it was
 * sent.
 */
#pragma once

#include "reading/clocks.h"

struct dt_estimate;

struct dt_estimate *dt_estimate_new(void);
void dt_estimate_event(void *estimate, const struct dt_recorded *event);
/* Sets the offsets of the clocks. */
void dt_estimate_end(struct dt_estimate *estimate, struct dt_clocks *clocks);
void dt_estimate_free(struct dt_estimate *estimate);
