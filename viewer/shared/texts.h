/* Texts that are kept, hashes of them, and numbers that are compared. */
#ifndef DT_VIEWER_SHARED_TEXTS_H
#define DT_VIEWER_SHARED_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes it a copy of this text; false: it was one. */
bool dt_set(char **to, const char *text);

/* The bytes of its begin that are whole characters, at most `most`. */
size_t dt_head(const char *text, size_t most);

/* A copy with at most `most` bytes and, if it is cut, `mark`. NULL: of "". */
char *dt_cut(const char *text, size_t most, const char *mark);

/* Moves past a text that begins so. */
bool dt_skip(const char **text, const char *head);

/* Moves past a text that begins so and ends with the next '>', which is copied: an identifier. */
bool dt_take(const char **text, const char *head, char *to, size_t room);

/* FNV-1a: numbers and texts are added one after the other, to DT_HASH at first. */
#define DT_HASH UINT64_C(0xcbf29ce484222325)

static inline uint64_t dt_hash_number(uint64_t hash, uint64_t number) {
    return (hash ^ number) * 0x100000001b3;
}

static inline uint64_t dt_hash_text(uint64_t hash, const char *text) {
    for (; *text; text++)
        hash = dt_hash_number(hash, (unsigned char)*text);
    return hash;
}

/* As functions that sort return it: below zero, zero or above. */
static inline int dt_compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

#endif
