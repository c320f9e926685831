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

/*
 * The cells of lists and small integers come in great numbers, and a call of erl_nif for each takes
 * most of the time of a long list. So both are read as the runtime encodes them:
 *
 *     list ──> [ head | tail ]         the pointer's lowest bits are a mark
 *     integer = number << 4 | mark     the other bits are the number's: no other term has it
 *
 * dt_heap_find compares both with terms of known contents. What does not have the mark goes to
 * erl_nif, and so does every term of a runtime with another encoding.
 */
enum { DT_SMALL_SHIFT = 4 };

extern struct dt_heap_marks {
    ERL_NIF_TERM list, small; /* DT_NO_MARK: another encoding */
} dt_heap_marks;

#define DT_NO_MARK (~(ERL_NIF_TERM)0)

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
        return enif_get_list_cell(env, list, head, tail);
    *head = cell[0];
    *tail = cell[1];
    return true;
}

/*
 * The tail of this list. Cells mostly stand in a row: then the tail is where the distance from the
 * cell before leads, and the processor goes on there before it has read the tail. The assembly is
 * empty; it keeps the compiler from seeing that the tail would do as well.
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

/* False for a larger integer, too. */
static inline bool dt_small(ERL_NIF_TERM term, long *number) {
    *number = (long)term >> DT_SMALL_SHIFT;
    return dt_is_small(term, dt_heap_marks.small);
}

/* Sets all of these. The environment is a new one: terms that are made in it one after the other
   are adjacent in memory. */
void dt_heap_find(ErlNifEnv *env);

#endif
