#include "text/cache.h"

#include <stdint.h>

#include "text/put.h"

/* An entry is a cache line. Longer texts are not cached. */
enum { ENTRY_BITS = 9, TEXT_MAX = 54 };

struct entry {
    ERL_NIF_TERM term;
    unsigned char spelling, size; /* 0: no entry */
    char text[TEXT_MAX];
};

static _Thread_local struct entry entries[1 << ENTRY_BITS];

static struct entry *entry_of(enum dt_spelling spelling, ERL_NIF_TERM term) {
    uint64_t hash = ((uint64_t)term ^ spelling) * UINT64_C(0x9E3779B97F4A7C15);

    return &entries[hash >> (64 - ENTRY_BITS)];
}

bool dt_cache_put(struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term) {
    const struct entry *entry = entry_of(spelling, term);

    if (entry->size == 0 || entry->term != term || entry->spelling != spelling ||
        dt_put_room(text) <= TEXT_MAX)
        return false;
    /* All of it is quicker to copy than as much as there is. */
    memcpy(text->next, entry->text, TEXT_MAX);
    text->next += entry->size;
    return true;
}

void dt_cache_store(const struct dt_text *text, enum dt_spelling spelling, ERL_NIF_TERM term,
                    const char *start) {
    size_t size = (size_t)(text->next - start);
    struct entry *entry = entry_of(spelling, term);

    if (size > TEXT_MAX)
        return;
    entry->term = term;
    entry->spelling = (unsigned char)spelling;
    entry->size = (unsigned char)size;
    memcpy(entry->text, start, size);
}
