/* Helpers for strings, hashes and comparisons. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces `*to` by a copy of the text; returns false if it already was equal. */
bool dt_set(char **to, const char *text);

/* The length of the longest prefix of whole characters that has at most `most` bytes. */
size_t dt_head(const char *text, size_t most);

/* A copy of at most `most` bytes, with `mark` after it if it is truncated. NULL counts as "". */
char *dt_cut(const char *text, size_t most, const char *mark);

/* The length of the quoted atom or string at the start of a text, including its quotes; the whole
   length if it has no closing quote. */
size_t dt_quoted(const char *text);

/* If the text begins with `head`, moves past it and returns true. */
bool dt_skip(const char **text, const char *head);

/* The same for an identifier, which begins with `head` and ends at the next '>'; copies it. */
bool dt_take(const char **text, const char *head, char *to, size_t room);

/* FNV-1a: start with DT_HASH and add numbers and texts one by one. */
#define DT_HASH UINT64_C(0xcbf29ce484222325)

static inline uint64_t dt_hash_number(uint64_t hash, uint64_t number) {
    return (hash ^ number) * 0x100000001b3;
}

static inline uint64_t dt_hash_text(uint64_t hash, const char *text) {
    for (; *text; text++)
        hash = dt_hash_number(hash, (unsigned char)*text);
    return hash;
}

/* Three-way comparison: negative, zero or positive. */
static inline int dt_compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}
