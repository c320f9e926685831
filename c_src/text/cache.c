#include "text/cache.h"

#include <string.h>

/* Aligned, so that entries start at cache lines. */
static _Thread_local _Alignas(64) struct dt_cache own;

struct dt_cache *dt_cache(void) {
    return &own;
}

void dt_cache_store_word(struct dt_cache *cache, enum dt_spelling spellings, ERL_NIF_TERM term,
                         const char *text, size_t size) {
    struct dt_cached_word *entry = dt_cache_word(cache, term);

    if (size >= sizeof entry->text)
        return;
    entry->term = term;
    entry->spellings = (unsigned char)spellings;
    entry->size = (unsigned char)size;
    memcpy(entry->text, text, size);
    entry->text[size] = '\0';
}

void dt_cache_store_call(struct dt_cache *cache, ERL_NIF_TERM module, ERL_NIF_TERM function,
                         unsigned long arity, const char *text, size_t size) {
    struct dt_cached_call *entry = dt_cache_call(cache, module, function, arity);

    if (size >= sizeof entry->text || arity > UINT16_MAX)
        return;
    entry->module = module;
    entry->function = function;
    entry->arity = (uint16_t)arity;
    entry->size = (unsigned char)size;
    memcpy(entry->text, text, size);
    entry->text[size] = '\0';
}
