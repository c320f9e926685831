/*
 * The messages of the timeline, in chunks of consecutive messages: in the period of a chunk, the
 * page has all messages. If there are too many chunks, those with only fast messages are dropped.
 */
#pragma once

#include "page/lane.h"

struct dt_page_message {
    struct dt_page_lane *from, *to; /* with references; NULL if unknown */
    int64_t sent, delivered;        /* DT_NO_VALUE */
    char *text;
    uint8_t matched;
    bool is_dead;
};

struct dt_page_messages;

struct dt_page_messages *dt_page_messages_new(unsigned most);
void dt_page_messages_free(struct dt_page_messages *messages);
void dt_page_messages_add(struct dt_page_messages *messages, const struct dt_message *message,
                          struct dt_page_lane *from, struct dt_page_lane *to);
uint64_t dt_page_messages_seen(const struct dt_page_messages *messages);
/* All kept messages, sorted by their first time; valid until the next message is added. */
const GArray *dt_page_messages_sorted(struct dt_page_messages *messages);
/* The periods of the chunks, as the JSON array "covered" of [begin, end], relative to `zero`. */
void dt_page_messages_covered(const struct dt_page_messages *messages, int64_t zero, GString *to);
