/*
 * Any term as text. No recursion: what is open is on a stack, and a text that nests deeper
 * than that is too long to be whole. Every step appends a byte or more, and the first one
 * that appends past DT_TERM_MAX is the last.
 */
#include <stdatomic.h>
#include <string.h>

#include "dt_known.h"
#include "dt_put.h"

struct writer {
    struct dt_text *text;
    ErlNifEnv *env;
    const char *start;
    bool cut; /* the text is as long as it may be, or ends before what can't be written */
};

static void check(struct writer *w, bool put) {
    if (!put || w->text->next - w->start > DT_TERM_MAX)
        w->cut = true;
}

static void append(struct writer *w, const char *s) {
    check(w, dt_put_string(w->text, s));
}

static void append_number(struct writer *w, unsigned long number) {
    check(w, dt_put_number(w->text, number));
}

/* -- What the runtime writes of a byte ---------------------------------------------- */

/* How a string has it; "" where a list or binary with it is none. */
struct spelling {
    char text[4];
};

static struct spelling in_list[256], in_binary[256];

/* Between the opening of a string and its end; a single byte past ASCII as UTF-8. */
static void spell(struct spelling *spelling, const char *raw, const char *open, const char *end) {
    size_t n = strlen(raw), around = strlen(open) + strlen(end);
    unsigned char c;

    if (n <= around || n >= around + sizeof spelling->text || strncmp(raw, open, strlen(open)) != 0)
        return;
    c = (unsigned char)raw[strlen(open)];
    if (n == around + 1 && c >= 0x80) {
        spelling->text[0] = (char)(0xC0 | c >> 6);
        spelling->text[1] = (char)(0x80 | (c & 0x3F));
    } else {
        memcpy(spelling->text, raw + strlen(open), n - around);
    }
}

static bool spell_bytes(ErlNifEnv *env) {
    for (unsigned c = 0; c < 256; c++) {
        ERL_NIF_TERM list = enif_make_list1(env, enif_make_uint(env, c)), binary;
        unsigned char *byte = enif_make_new_binary(env, 1, &binary);
        char raw[16];

        if (!byte)
            return false;
        *byte = (unsigned char)c;
        if (enif_snprintf(raw, sizeof raw, "%T", list) > 0)
            spell(&in_list[c], raw, "\"", "\"");
        if (enif_snprintf(raw, sizeof raw, "%T", binary) > 0)
            spell(&in_binary[c], raw, "<<\"", "\">>");
    }
    return true;
}

static const char *spelled(const struct spelling spellings[], unsigned c) {
    return c < 256 && spellings[c].text[0] ? spellings[c].text : NULL;
}

/* -- Integers ----------------------------------------------------------------------- */

/* Those between the two have a text that may fit. They are copies in an environment that
   stays, since a callback may be reading them whenever it would be freed. */
static ERL_NIF_TERM least, greatest;

static bool is_short_enough(ERL_NIF_TERM integer) {
    return enif_compare(integer, least) >= 0 && enif_compare(integer, greatest) <= 0;
}

static void write_integer(struct writer *w, ERL_NIF_TERM integer) {
    long i;

    if (enif_get_long(w->env, integer, &i)) {
        if (i < 0)
            append(w, "-");
        append_number(w, i < 0 ? 0UL - (unsigned long)i : (unsigned long)i);
    } else if (is_short_enough(integer)) {
        check(w, dt_put_runtime(w->text, integer));
    } else {
        w->cut = true;
    }
}

/* -- Other terms that hold none ------------------------------------------------------- */

static void write_atom(struct writer *w, ERL_NIF_TERM atom) {
    const char *start = w->text->next;
    bool put = dt_known_put(w->text, DT_AS_RUNTIME, atom);

    if (!put && (put = dt_put_runtime(w->text, atom)))
        dt_known_keep(w->text, DT_AS_RUNTIME, atom, start);
    check(w, put);
}

static void write_handle(struct writer *w, ERL_NIF_TERM handle) {
    check(w, dt_put_handle(w->text, w->env, handle));
}

/* Floats and funs are short. */
static void write_runtime(struct writer *w, ERL_NIF_TERM term) {
    check(w, dt_put_runtime(w->text, term));
}

/* The precision is how many bytes are written, at two characters or more each. */
static void write_bits(struct writer *w, ERL_NIF_TERM bits) {
    char raw[DT_ATOM_MAX];
    int n = enif_snprintf(raw, sizeof raw, "%.*T", DT_TERM_MAX / 2, bits);

    if (n > 0)
        append(w, raw);
}

static bool is_printable(const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n && i <= DT_TERM_MAX; i++)
        if (!spelled(in_binary, bytes[i]))
            return false;
    return n > 0;
}

static void write_binary(struct writer *w, ERL_NIF_TERM term) {
    ErlNifBinary binary;
    bool printable;

    if (!enif_inspect_binary(w->env, term, &binary)) {
        write_bits(w, term);
        return;
    }
    printable = is_printable(binary.data, binary.size);
    append(w, printable ? "<<\"" : "<<");
    for (size_t i = 0; i < binary.size && !w->cut; i++) {
        if (!printable && i > 0)
            append(w, ",");
        if (printable)
            append(w, spelled(in_binary, binary.data[i]));
        else
            append_number(w, binary.data[i]);
    }
    append(w, printable ? "\">>" : ">>");
}

static bool is_string(ErlNifEnv *env, ERL_NIF_TERM list) {
    ERL_NIF_TERM head;
    unsigned c;

    for (unsigned n = 0; n <= DT_TERM_MAX && enif_get_list_cell(env, list, &head, &list); n++)
        if (!enif_get_uint(env, head, &c) || !spelled(in_list, c))
            return false;
    return enif_is_list(env, list);
}

static void write_string(struct writer *w, ERL_NIF_TERM list) {
    ERL_NIF_TERM head;
    unsigned c;

    append(w, "\"");
    while (!w->cut && enif_get_list_cell(w->env, list, &head, &list)) {
        const char *character = enif_get_uint(w->env, head, &c) ? spelled(in_list, c) : NULL;

        if (!character)
            w->cut = true; /* past where anybody looked */
        else
            append(w, character);
    }
    append(w, "\"");
}

/* -- Terms in terms ------------------------------------------------------------------- */

/* Each of them has written a byte. */
enum { DEPTH = DT_TERM_MAX };

enum kind { TUPLE, LIST, MAP };

static const struct {
    const char *open, *close;
} marks[] = {[TUPLE] = {"{", "}"}, [LIST] = {"[", "]"}, [MAP] = {"#{", "}"}};

/* A term that is written in part. */
struct part {
    enum kind kind;
    bool begun;
    bool value; /* of a map: what comes next is the value of the key that came last */
    union {
        struct {
            const ERL_NIF_TERM *next, *end;
        } tuple;
        ERL_NIF_TERM rest; /* of a list */
        ErlNifMapIterator map;
    };
};

struct stack {
    unsigned depth;
    struct part parts[DEPTH];
};

static struct part *open_part(struct writer *w, struct stack *stack, enum kind kind) {
    struct part *part;

    if (stack->depth == DEPTH) {
        w->cut = true;
        return NULL;
    }
    part = &stack->parts[stack->depth];
    part->kind = kind;
    part->begun = part->value = false;
    return part;
}

static void open_tuple(struct writer *w, struct stack *stack, ERL_NIF_TERM tuple) {
    struct part *part = open_part(w, stack, TUPLE);
    const ERL_NIF_TERM *el;
    int size;

    if (!part || !enif_get_tuple(w->env, tuple, &size, &el))
        return;
    part->tuple.next = el;
    part->tuple.end = el + size;
    stack->depth++;
    append(w, marks[TUPLE].open);
}

static void open_list(struct writer *w, struct stack *stack, ERL_NIF_TERM list) {
    struct part *part;

    if (!enif_is_empty_list(w->env, list) && is_string(w->env, list)) {
        write_string(w, list);
    } else if ((part = open_part(w, stack, LIST))) {
        part->rest = list;
        stack->depth++;
        append(w, marks[LIST].open);
    }
}

/* The runtime allocates the iterator of a large map: each is destroyed. */
static void open_map(struct writer *w, struct stack *stack, ERL_NIF_TERM map) {
    struct part *part = open_part(w, stack, MAP);

    if (!part || !enif_map_iterator_create(w->env, map, &part->map, ERL_NIF_MAP_ITERATOR_FIRST))
        return;
    stack->depth++;
    append(w, marks[MAP].open);
}

static bool next_of_tuple(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    if (part->tuple.next == part->tuple.end)
        return false;
    if (part->begun)
        append(w, ",");
    *term = *part->tuple.next++;
    return true;
}

static bool next_of_list(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    if (enif_is_empty_list(w->env, part->rest))
        return false;
    if (enif_get_list_cell(w->env, part->rest, term, &part->rest)) {
        if (part->begun)
            append(w, ",");
        return true;
    }
    append(w, "|");
    *term = part->rest;
    part->rest = enif_make_list(w->env, 0);
    return true;
}

static bool next_of_map(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    ERL_NIF_TERM key, value;

    if (!enif_map_iterator_get_pair(w->env, &part->map, &key, &value))
        return false;
    if (part->value) {
        append(w, "=>");
        *term = value;
        (void)enif_map_iterator_next(w->env, &part->map);
    } else {
        if (part->begun)
            append(w, ",");
        *term = key;
    }
    part->value = !part->value;
    return true;
}

typedef bool next_of(struct writer *w, struct part *part, ERL_NIF_TERM *term);

static next_of *const next[] = {
    [TUPLE] = next_of_tuple, [LIST] = next_of_list, [MAP] = next_of_map};

static void close_part(struct writer *w, struct stack *stack) {
    struct part *part = &stack->parts[--stack->depth];

    if (part->kind == MAP)
        enif_map_iterator_destroy(w->env, &part->map);
}

/* The next term to write, or the end of all that are open. */
static bool next_term(struct writer *w, struct stack *stack, ERL_NIF_TERM *term) {
    while (stack->depth > 0 && !w->cut) {
        struct part *part = &stack->parts[stack->depth - 1];

        if (next[part->kind](w, part, term)) {
            part->begun = true;
            return !w->cut;
        }
        append(w, marks[part->kind].close);
        close_part(w, stack);
    }
    return false;
}

/* -- Contents, or their shape ----------------------------------------------------------- */

static void write_contents(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    switch (enif_term_type(w->env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        write_atom(w, term);
        break;
    case ERL_NIF_TERM_TYPE_INTEGER:
        write_integer(w, term);
        break;
    case ERL_NIF_TERM_TYPE_PID:
    case ERL_NIF_TERM_TYPE_PORT:
    case ERL_NIF_TERM_TYPE_REFERENCE:
        write_handle(w, term);
        break;
    case ERL_NIF_TERM_TYPE_FLOAT:
    case ERL_NIF_TERM_TYPE_FUN:
        write_runtime(w, term);
        break;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        write_binary(w, term);
        break;
    case ERL_NIF_TERM_TYPE_TUPLE:
        open_tuple(w, stack, term);
        break;
    case ERL_NIF_TERM_TYPE_LIST:
        open_list(w, stack, term);
        break;
    case ERL_NIF_TERM_TYPE_MAP:
        open_map(w, stack, term);
        break;
    default:
        w->cut = true; /* a type of a later release */
    }
}

static void write_sized(struct writer *w, const char *type, unsigned long size, const char *end) {
    append(w, "{");
    append(w, type);
    append(w, ",");
    append_number(w, size);
    append(w, end);
}

static void write_list_shape(struct writer *w, ERL_NIF_TERM list) {
    enum { COUNTED = 1000 };
    unsigned long n = 0;
    ERL_NIF_TERM head;

    while (n < COUNTED && enif_get_list_cell(w->env, list, &head, &list))
        n++;
    if (enif_is_empty_list(w->env, list))
        write_sized(w, "list", n, "}");
    else if (n == COUNTED)
        write_sized(w, "list", n, "...}");
    else
        write_sized(w, "improper_list", n, "}");
}

static void write_shape(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    size_t size;
    ErlNifBinary binary;

    switch (enif_term_type(w->env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        write_atom(w, term);
        break;
    case ERL_NIF_TERM_TYPE_TUPLE:
        open_tuple(w, stack, term);
        break;
    case ERL_NIF_TERM_TYPE_LIST:
        write_list_shape(w, term);
        break;
    case ERL_NIF_TERM_TYPE_MAP:
        write_sized(w, "map", enif_get_map_size(w->env, term, &size) ? size : 0, "}");
        break;
    case ERL_NIF_TERM_TYPE_BITSTRING:
        if (enif_inspect_binary(w->env, term, &binary))
            write_sized(w, "binary", binary.size, "}");
        else
            append(w, "bitstring()");
        break;
    case ERL_NIF_TERM_TYPE_INTEGER:
        append(w, "integer()");
        break;
    case ERL_NIF_TERM_TYPE_FLOAT:
        append(w, "float()");
        break;
    case ERL_NIF_TERM_TYPE_PID:
        append(w, "pid()");
        break;
    case ERL_NIF_TERM_TYPE_PORT:
        append(w, "port()");
        break;
    case ERL_NIF_TERM_TYPE_REFERENCE:
        append(w, "reference()");
        break;
    case ERL_NIF_TERM_TYPE_FUN:
        append(w, "fun()");
        break;
    default:
        w->cut = true;
    }
}

/* -- The text --------------------------------------------------------------------------- */

static atomic_bool shapes;

void dt_text_show_shapes(bool show) {
    atomic_store_explicit(&shapes, show, memory_order_relaxed);
}

const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term) {
    bool shape = atomic_load_explicit(&shapes, memory_order_relaxed);
    char *start = text->next;
    struct writer w = {.text = text, .env = env, .start = start};
    struct stack stack;

    stack.depth = 0;
    do {
        if (shape)
            write_shape(&w, &stack, term);
        else
            write_contents(&w, &stack, term);
    } while (next_term(&w, &stack, &term));
    while (stack.depth > 0)
        close_part(&w, &stack);
    return dt_put_cut_end(text, start, DT_TERM_MAX, !w.cut);
}

bool dt_text_calibrate(ErlNifEnv *env, ERL_NIF_TERM from, ERL_NIF_TERM to) {
    static ErlNifEnv *kept;

    if (kept)
        return true;
    if (!enif_is_number(env, from) || !enif_is_number(env, to) || !spell_bytes(env) ||
        !(kept = enif_alloc_env()))
        return false;
    least = enif_make_copy(kept, from);
    greatest = enif_make_copy(kept, to);
    return true;
}
