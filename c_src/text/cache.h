/*
 * Caches the texts of atoms, of this node's pids and ports, and of functions, because they occur
 * frequently.
 *
 * A cached text never becomes stale. Such a term is one word, which identifies it: the VM never
 * reuses an atom's number, and %T writes a local pid or port from the bits of the word. Neither the
 * end of a process nor a new node name changes them. Terms that point to a heap are never cached.
 *
 * Each thread has its own table, so it needs no lock. Its size is fixed: a new text replaces the
 * one in its entry. The texts end in NUL.
 */
#ifndef DT_TEXT_CACHE_H
#define DT_TEXT_CACHE_H

#include <erl_nif.h>
#include <stddef.h>
#include <stdint.h>

#include "text/hash.h"

/* Bits: the spellings of an atom may differ, those of a pid or port do not. */
enum dt_spelling { DT_AS_ERLANG = 1, DT_AS_RUNTIME = 2, DT_AS_BOTH = DT_AS_ERLANG | DT_AS_RUNTIME };

/* On 64 bits, an entry has the size of a cache line, or of two. Longer texts are not cached. */
enum { DT_WORD_BITS = 9, DT_WORD_MAX = 54, DT_CALL_BITS = 7, DT_CALL_MAX = 109 };

struct dt_cached_word {
    ERL_NIF_TERM term; /* 0, which is not a valid term: no entry */
    unsigned char spellings, size;
    char text[DT_WORD_MAX];
};

struct dt_cached_call {
    ERL_NIF_TERM module, function; /* 0: no entry */
    uint16_t arity;
    unsigned char size;
    char text[DT_CALL_MAX];
};

struct dt_cache {
    struct dt_cached_word words[1 << DT_WORD_BITS];
    struct dt_cached_call calls[1 << DT_CALL_BITS];
};

/* Returns the table of the calling thread. */
struct dt_cache *dt_cache(void);

static inline struct dt_cached_word *dt_cache_word(struct dt_cache *cache, ERL_NIF_TERM term) {
    return &cache->words[dt_hash(term, DT_WORD_BITS)];
}

static inline struct dt_cached_call *dt_cache_call(struct dt_cache *cache, ERL_NIF_TERM module,
                                                   ERL_NIF_TERM function, unsigned long arity) {
    return &cache->calls[dt_hash_function(module, function, arity, DT_CALL_BITS)];
}

/* The entry, if it has this text, or NULL. Takes any term. */
static inline const struct dt_cached_word *
dt_cache_find_word(struct dt_cache *cache, enum dt_spelling spelling, ERL_NIF_TERM term) {
    const struct dt_cached_word *entry = dt_cache_word(cache, term);

    return entry->term == term && entry->spellings & spelling ? entry : NULL;
}

static inline const struct dt_cached_call *dt_cache_find_call(struct dt_cache *cache,
                                                              ERL_NIF_TERM module,
                                                              ERL_NIF_TERM function,
                                                              unsigned long arity) {
    const struct dt_cached_call *entry = dt_cache_call(cache, module, function, arity);

    return entry->module == module && entry->function == function && entry->arity == arity ? entry
                                                                                           : NULL;
}

/* Caches `size` bytes as the text of an atom, or of a local pid or port. */
void dt_cache_store_word(struct dt_cache *cache, enum dt_spelling spellings, ERL_NIF_TERM term,
                         const char *text, size_t size);

/* The same for a function; module and name must be atoms. */
void dt_cache_store_call(struct dt_cache *cache, ERL_NIF_TERM module, ERL_NIF_TERM function,
                         unsigned long arity, const char *text, size_t size);

#endif
