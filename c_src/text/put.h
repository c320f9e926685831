/*
 * Appends to the buffer of a dt_text, and ends texts.
 */
#ifndef DT_TEXT_PUT_H
#define DT_TEXT_PUT_H

#include <string.h>

#include "text/text.h"

/* The remaining bytes, including one for the NUL. */
static inline size_t dt_put_room(const struct dt_text *text) {
    return (size_t)(text->buffer + sizeof text->buffer - text->next);
}

/* Returns false, and leaves the buffer unchanged, if it is full. */
static inline bool dt_put(struct dt_text *text, const char *s, size_t n) {
    if (n >= dt_put_room(text))
        return false;
    memcpy(text->next, s, n);
    text->next += n;
    return true;
}

static inline bool dt_put_string(struct dt_text *text, const char *s) {
    return dt_put(text, s, strlen(s));
}

/* The same for more than a few bytes, for which memcpy is faster than inline code. */
bool dt_put_bytes(struct dt_text *text, const void *s, size_t n);

/* Writes the digits of a number to `to`; returns their end. */
enum { DT_DIGITS = 20 };
char *dt_digits(char *to, unsigned long number);

bool dt_put_number(struct dt_text *text, unsigned long number);

/* Appends the text of the runtime's %T. Only for terms that it writes in bounded time. */
bool dt_put_runtime(struct dt_text *text, ERL_NIF_TERM term);

/* Appends the first `size` bytes of a cache's entry of `max` bytes, if there is room for `max`: a
   copy of a constant size is faster. */
static inline bool dt_put_entry(struct dt_text *text, const char *entry, size_t max, size_t size) {
    if (dt_put_room(text) <= max)
        return false;
    memcpy(text->next, entry, max);
    text->next += size;
    return true;
}

/* Appends the text of an atom, or of a local pid or port, if it is cached and fits. Takes any
   term. */
static inline bool dt_put_cached(struct dt_text *text, enum dt_spelling spelling,
                                 ERL_NIF_TERM term) {
    const struct dt_cached_word *cached = dt_cache_find_word(text->cache, spelling, term);

    return cached && dt_put_entry(text, cached->text, sizeof cached->text, cached->size);
}

/* Ends the text that began at `start`. If it is not `whole`, removes it and returns NULL. */
static inline const char *dt_put_end(struct dt_text *text, char *start, bool whole) {
    if (!whole || !dt_put(text, "", 1)) {
        text->next = start;
        return NULL;
    }
    return start;
}

/* The same for a text of at most `max` bytes. A longer or incomplete (not `all`) text is cut at a
   character boundary and ends in "...". */
const char *dt_put_cut_end(struct dt_text *text, char *start, size_t max, bool all);

#endif
