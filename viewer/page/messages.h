/*
 * The messages of the timeline. They are kept in chunks of what followed one another, so that where
 * the page has messages it has all of them. Of too many chunks those are dropped whose messages
 * were all fast.
 */
#ifndef DT_VIEWER_PAGE_MESSAGES_H
#define DT_VIEWER_PAGE_MESSAGES_H

#include "page/lane.h"

struct dt_page_message {
    struct dt_page_lane *from, *to; /* referred to; NULL if unknown */
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
/* All kept ones in the order of their first time; valid until the next one is added. */
const GArray *dt_page_messages_sorted(struct dt_page_messages *messages);
/* The times that the chunks cover, as the JSON array "covered" of [begin, end], relative to `zero`.
 */
void dt_page_messages_covered(const struct dt_page_messages *messages, int64_t zero, GString *to);

#endif
