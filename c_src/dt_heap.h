/*
 * Where a term lies. erl_nif shows it for tuples alone: a term that is on the heap is a pointer to
 * its first word, the header, with a mark in the lowest bits. All else is in the term itself
 * (atoms, small integers, …) or is a list, which has another mark.
 */
#ifndef DT_HEAP_H
#define DT_HEAP_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_HEAP_MARK ((ERL_NIF_TERM)3)

/* The mark, and whether it was found to be as above. */
extern ERL_NIF_TERM dt_heap_mark;
extern bool dt_heap_found;

static inline bool dt_heap_is_pointer(ERL_NIF_TERM term) {
    return dt_heap_found && (term & DT_HEAP_MARK) == dt_heap_mark;
}

/* The header of such a term. */
static inline const ERL_NIF_TERM *dt_heap_of(ERL_NIF_TERM term) {
    const ERL_NIF_TERM bits = sizeof term - 1;

    return (const ERL_NIF_TERM *)(uintptr_t)(term & ~bits); // NOLINT(performance-no-int-to-ptr)
}

/* Looks at a tuple, which erl_nif tells the place of. */
void dt_heap_find(ErlNifEnv *env);

#endif
