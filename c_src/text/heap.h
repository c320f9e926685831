/*
 * The words of a term on the heap. Such a term is a pointer to its first word, the header, with a
 * mark in the lowest bits. Other terms are in the word itself (atoms, small integers, …), or are
 * lists, whose pointers have another mark. erl_nif shows a heap address for tuples alone, so the
 * mark is read from a tuple when the library is loaded.
 */
#ifndef DT_TEXT_HEAP_H
#define DT_TEXT_HEAP_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_HEAP_MARK ((ERL_NIF_TERM)3)

/* The mark, and whether a tuple of this runtime is laid out as above. */
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

/* Sets both. */
void dt_heap_find(ErlNifEnv *env);

#endif
