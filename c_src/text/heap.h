/*
 * The words of a term on the heap. Such a term is a pointer to its first word, the header, with a
 * mark in the lowest bits. Other terms are in the word itself (atoms, small integers, …), or are
 * lists, whose pointers have another mark. erl_nif returns a heap address only for tuples, so the
 * mark is determined from a tuple when the library is loaded.
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

/*
 * List cells and small integers are numerous, and calling erl_nif for each would take most of the
 * time of a long list. So both are read in the encoding of the runtime:
 *
 *     list ──> [ head | tail ]         the pointer's lowest bits are a mark
 *     integer = number << 4 | mark     the mark is unique, the other bits are the number
 *
 * dt_heap_find verifies both with terms of known contents. Terms without the mark are passed to
 * erl_nif, as are all terms in a runtime with another encoding.
 */
enum { DT_SMALL_SHIFT = 4 };

extern struct dt_heap_marks {
    ERL_NIF_TERM list, small; /* DT_NO_MARK: another encoding */
} dt_heap_marks;

#define DT_NO_MARK (~(ERL_NIF_TERM)0)

extern ERL_NIF_TERM dt_empty_list; /* one word, like an atom */

static inline bool dt_is_cell(ERL_NIF_TERM term, ERL_NIF_TERM mark) {
    return (term & (sizeof term - 1)) == mark;
}

static inline bool dt_is_small(ERL_NIF_TERM term, ERL_NIF_TERM mark) {
    return (term & ((1U << DT_SMALL_SHIFT) - 1)) == mark;
}

static inline bool dt_list_cell(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *head,
                                ERL_NIF_TERM *tail) {
    const ERL_NIF_TERM *cell = dt_heap_of(list);

    if (!dt_is_cell(list, dt_heap_marks.list))
        return list != dt_empty_list && enif_get_list_cell(env, list, head, tail);
    *head = cell[0];
    *tail = cell[1];
    return true;
}

/*
 * The tail of this list. Cells are mostly equidistant: then the tail can be predicted from the
 * distance to the previous cell, and the processor continues there before it has read the tail. The
 * empty assembly prevents the compiler from replacing the prediction by the tail.
 */
static inline ERL_NIF_TERM dt_tail(ERL_NIF_TERM list, ERL_NIF_TERM *distance) {
    const ERL_NIF_TERM tail = dt_heap_of(list)[1];
    ERL_NIF_TERM expected = list + *distance, same = expected;

    __asm__("" : "+r"(same));
    if (__builtin_expect(tail == expected, true))
        return same;
    *distance = tail - list;
    return tail;
}

/* Also false for larger integers. */
static inline bool dt_small(ERL_NIF_TERM term, long *number) {
    *number = (long)term >> DT_SMALL_SHIFT;
    return dt_is_small(term, dt_heap_marks.small);
}

/*
 * The header of a tuple states its size. Tuples of two and three elements, of which trace events
 * consist, are recognized by their headers. Other terms are passed to erl_nif, as are all in a
 * runtime with another layout.
 */
enum { DT_TUPLE_MAX = 3 };

extern ERL_NIF_TERM dt_tuple_headers[DT_TUPLE_MAX + 1]; /* by size; DT_NO_MARK: unknown */

/* The elements of a tuple of that size, at most DT_TUPLE_MAX; NULL for any other term. */
static inline const ERL_NIF_TERM *dt_tuple(ErlNifEnv *env, ERL_NIF_TERM term, int size) {
    const ERL_NIF_TERM *elements;
    int found;

    if (dt_heap_is_pointer(term) && *dt_heap_of(term) == dt_tuple_headers[size])
        return dt_heap_of(term) + 1;
    return enif_get_tuple(env, term, &found, &elements) && found == size ? elements : NULL;
}

/* Sets all of these. The environment must be new, so that terms that are made one after the other
   are adjacent in memory. */
void dt_heap_find(ErlNifEnv *env);

#endif
