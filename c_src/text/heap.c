#include "text/heap.h"

ERL_NIF_TERM dt_heap_mark;
bool dt_heap_found;
struct dt_heap_marks dt_heap_marks = {DT_NO_MARK, DT_NO_MARK};
ERL_NIF_TERM dt_empty_list;
ERL_NIF_TERM dt_tuple_headers[] = {DT_NO_MARK, DT_NO_MARK, DT_NO_MARK, DT_NO_MARK};

/* Each bit of a number, set and cleared. */
static void find_small(ErlNifEnv *env) {
    const ERL_NIF_TERM mark = enif_make_long(env, 0);
    const int bits = 8 * (int)sizeof mark - DT_SMALL_SHIFT;

    if (sizeof(long) != sizeof mark || mark >> DT_SMALL_SHIFT != 0)
        return;
    for (int i = 0; i < bits; i++) {
        /* the highest bit is the sign */
        const long bit = (long)((ERL_NIF_TERM)1 << DT_SMALL_SHIFT << i) >> DT_SMALL_SHIFT;

        for (int set = 0; set < 2; set++) {
            const long number = set ? bit : ~bit;
            const ERL_NIF_TERM term = enif_make_long(env, number);

            if (term != ((ERL_NIF_TERM)number << DT_SMALL_SHIFT | mark) ||
                (long)term >> DT_SMALL_SHIFT != number)
                return;
        }
    }
    dt_heap_marks.small = mark;
}

/* Whether another kind of term also has the mark. */
static bool is_mark_of_others(ErlNifEnv *env, ERL_NIF_TERM mark) {
    const ERL_NIF_TERM others[] = {enif_make_list(env, 0), enif_make_atom(env, "true"),
                                   enif_make_long(env, 0), enif_make_long(env, -1)};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((others[i] & (sizeof mark - 1)) == mark)
            return true;
    return (mark & DT_HEAP_MARK) == dt_heap_mark;
}

/* The cells must be adjacent to the tuple that was made before them, so that a word of an unknown
   encoding is never used as an address. */
static void find_list(ErlNifEnv *env, const ERL_NIF_TERM *behind) {
    const ERL_NIF_TERM head = enif_make_int(env, 4711), end = enif_make_list(env, 0);
    const ERL_NIF_TERM tail = enif_make_list_cell(env, head, end);
    const ERL_NIF_TERM list = enif_make_list_cell(env, head, tail);
    const ERL_NIF_TERM mark = list & (sizeof list - 1);

    if (!is_mark_of_others(env, mark) && (tail & (sizeof tail - 1)) == mark &&
        dt_heap_of(tail) == behind && dt_heap_of(list) == behind + 2 && behind[0] == head &&
        behind[1] == end && behind[2] == head && behind[3] == tail)
        dt_heap_marks.list = mark;
}

static ERL_NIF_TERM header_of(ErlNifEnv *env, ERL_NIF_TERM tuple) {
    const ERL_NIF_TERM *el;
    int arity;

    return enif_get_tuple(env, tuple, &arity, &el) && dt_heap_of(tuple) == el - 1 ? el[-1]
                                                                                  : DT_NO_MARK;
}

void dt_heap_find(ErlNifEnv *env) {
    ERL_NIF_TERM tuple = enif_make_tuple1(env, enif_make_int(env, 0));
    const ERL_NIF_TERM *el;
    int arity;
    bool found;

    dt_heap_mark = tuple & DT_HEAP_MARK;
    found =
        dt_heap_mark != 0 && enif_get_tuple(env, tuple, &arity, &el) && dt_heap_of(tuple) == el - 1;
    dt_heap_found = found;
    dt_empty_list = enif_make_list(env, 0);
    find_small(env);
    if (!found)
        return;
    find_list(env, el + 1);
    dt_tuple_headers[2] = header_of(env, enif_make_tuple2(env, dt_empty_list, dt_empty_list));
    dt_tuple_headers[3] =
        header_of(env, enif_make_tuple3(env, dt_empty_list, dt_empty_list, dt_empty_list));
}
