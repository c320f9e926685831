/*
 * Converts messages of babeltrace2 to recorded events for the model.
 */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "reading/clocks.h"
#include "shared/model_events.h"

/* Callbacks of the reader. Functions that are NULL are not called. */
struct dt_reads {
    void (*event)(void *data, const struct dt_recorded *event);
    /* An event of another provider, or one whose fields could not be read. */
    void (*skip)(void *data);
    /* A loss begins whose end is not yet known: the known state ends at `begin`. */
    void (*losing)(void *data, const struct dt_place *place, int64_t begin);
    /* Events of this place may be lost up to `end`: until then, a missing event means nothing. */
    void (*unsure)(void *data, const struct dt_place *place, int64_t end);
    /* A loss whose end is known. */
    void (*lost)(void *data, const struct dt_place *place, const struct dt_lost *lost);
};

struct dt_reader;

struct dt_reader *dt_reader_new(const struct dt_reads *reads, void *data, struct dt_clocks *clocks);
void dt_reader_message(struct dt_reader *reader, const bt_message *message);
void dt_reader_free(struct dt_reader *reader);
