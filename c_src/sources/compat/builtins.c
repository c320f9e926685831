#include "sources/compat/builtins.h"

#include <pthread.h>
#include <stdatomic.h>

#include "text/hash.h"

/*
 * Two hash tables with linear probing, one of which is current. A writer fills the other one, then
 * makes it current. If a writer returns to a table, two changes later, while a reader is still in
 * it, the reader finds that its version has changed, and restarts in the current one.
 *
 * All loads of slots acquire and all stores release: a reader that has seen a new slot also sees
 * the odd version that the writer stored before. (Fences would suffice, but ThreadSanitizer does
 * not support them.)
 */
enum {
    SLOTS_LOG2 = 13,
    SLOTS = 1 << SLOTS_LOG2,
    STEPS = 256, /* the maximum distance of a function from its first slot */
    TRIES = 4,
};

_Static_assert(DT_BUILTINS_MAX <= SLOTS / 2, "the tables get slow when they are fuller");

struct slot {
    _Atomic(ERL_NIF_TERM) module, function; /* atoms are one word each */
    _Atomic(unsigned long) what;            /* arity and kind; 0: free */
};

static struct table {
    _Atomic(unsigned) version; /* odd while it is written */
    struct slot slots[SLOTS];
} tables[2];

static _Atomic(unsigned) current;

struct function {
    ERL_NIF_TERM module, function;
    unsigned long arity;
};

static unsigned first_slot(const struct function *f) {
    return dt_hash_function(f->module, f->function, f->arity, SLOTS_LOG2);
}

enum { KIND_BITS = 2, KIND_MASK = (1 << KIND_BITS) - 1 };

/* -- Reading ------------------------------------------------------------------------ */

static enum dt_builtin find(const struct table *table, const struct function *f) {
    unsigned slot = first_slot(f);

    for (int i = 0; i < STEPS; i++, slot = (slot + 1) % SLOTS) {
        const struct slot *s = &table->slots[slot];
        unsigned long what = atomic_load_explicit(&s->what, memory_order_acquire);

        if (what == 0)
            break;
        if (what >> KIND_BITS == f->arity &&
            atomic_load_explicit(&s->function, memory_order_acquire) == f->function &&
            atomic_load_explicit(&s->module, memory_order_acquire) == f->module)
            return what & KIND_MASK;
    }
    return DT_NOT_BUILTIN;
}

enum dt_builtin dt_builtin_of(ERL_NIF_TERM module, ERL_NIF_TERM function, unsigned long arity) {
    const struct function f = {module, function, arity};

    for (int i = 0; i < TRIES; i++) {
        const struct table *table = &tables[atomic_load_explicit(&current, memory_order_acquire)];
        unsigned version = atomic_load_explicit(&table->version, memory_order_acquire);
        enum dt_builtin kind = find(table, &f);

        if (version % 2 == 0 &&
            atomic_load_explicit(&table->version, memory_order_acquire) == version)
            return kind;
    }
    return DT_NOT_BUILTIN;
}

/* -- Writing ------------------------------------------------------------------------ */

static bool get_function(ErlNifEnv *env, ERL_NIF_TERM term, struct function *f) {
    const ERL_NIF_TERM *el;
    int size;

    if (!enif_get_tuple(env, term, &size, &el) || size != 3 || !enif_is_atom(env, el[0]) ||
        !enif_is_atom(env, el[1]) || !enif_get_ulong(env, el[2], &f->arity) || f->arity > 255)
        return false;
    f->module = el[0];
    f->function = el[1];
    return true;
}

static bool store(struct table *table, const struct function *f, enum dt_builtin kind) {
    unsigned slot = first_slot(f);

    for (int i = 0; i < STEPS; i++, slot = (slot + 1) % SLOTS) {
        struct slot *s = &table->slots[slot];

        if (atomic_load_explicit(&s->what, memory_order_relaxed) != 0)
            continue;
        atomic_store_explicit(&s->module, f->module, memory_order_release);
        atomic_store_explicit(&s->function, f->function, memory_order_release);
        atomic_store_explicit(&s->what, f->arity << KIND_BITS | kind, memory_order_release);
        return true;
    }
    return false;
}

/* How many more functions may be stored, and how many did not fit. */
struct room {
    unsigned left, left_out;
};

static bool fill(ErlNifEnv *env, struct table *table, ERL_NIF_TERM list, enum dt_builtin kind,
                 struct room *room) {
    ERL_NIF_TERM head;
    struct function f;

    while (enif_get_list_cell(env, list, &head, &list)) {
        if (!get_function(env, head, &f))
            return false;
        if (room->left > 0 && store(table, &f, kind))
            room->left--;
        else
            room->left_out++;
    }
    return enif_is_empty_list(env, list);
}

/* Free slots are not written, so that their pages stay untouched. */
static void empty(struct table *table) {
    for (unsigned i = 0; i < SLOTS; i++)
        if (atomic_load_explicit(&table->slots[i].what, memory_order_relaxed) != 0)
            atomic_store_explicit(&table->slots[i].what, 0, memory_order_release);
}

bool dt_builtins_set(ErlNifEnv *env, ERL_NIF_TERM bifs, ERL_NIF_TERM nifs, unsigned *left_out) {
    static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;
    struct room room = {.left = DT_BUILTINS_MAX};
    struct table *table;
    unsigned other;
    bool filled;

    pthread_mutex_lock(&writer);
    other = 1 - atomic_load_explicit(&current, memory_order_relaxed);
    table = &tables[other];
    atomic_fetch_add_explicit(&table->version, 1, memory_order_acq_rel);
    empty(table);
    filled = fill(env, table, bifs, DT_BIF, &room) && fill(env, table, nifs, DT_NIF, &room);
    atomic_fetch_add_explicit(&table->version, 1, memory_order_release);
    if (filled)
        atomic_store_explicit(&current, other, memory_order_release);
    pthread_mutex_unlock(&writer);
    *left_out = room.left_out;
    return filled;
}
