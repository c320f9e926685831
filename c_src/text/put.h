/*
 * What the sources that make text share: they append to the buffer of a dt_text, and end
 * what they began.
 */
#ifndef DT_PUT_H
#define DT_PUT_H

#include <string.h>

#include "dt_text.h"

/* The bytes that are left, and one for the end. */
static inline size_t dt_put_room(const struct dt_text *text) {
    return (size_t)(text->buffer + sizeof text->buffer - text->next);
}

/* False, and the buffer as it was, where it is full. */
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

/* The same for more than a few bytes: the library's copy is quicker than one in place. */
bool dt_put_bytes(struct dt_text *text, const void *s, size_t n);

bool dt_put_number(struct dt_text *text, unsigned long number);

/* As the runtime's %T writes it: for terms that it writes in bounded time. */
bool dt_put_runtime(struct dt_text *text, ERL_NIF_TERM term);

/* The same for floats, and quicker. */
bool dt_put_float(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

/* A pid, port or reference. */
bool dt_put_handle(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM handle);

/* Ends the text that began at `start`; NULL, and the buffer as it was then, if it is not whole. */
const char *dt_put_end(struct dt_text *text, char *start, bool whole);

/* The same for a text of at most `max` bytes: if it is longer, or what stands there is not all, it
   is cut at a character's boundary, and marked by "...". */
const char *dt_put_cut_end(struct dt_text *text, char *start, size_t max, bool all);

#endif
