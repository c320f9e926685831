/*
 * Any term as text. It does not recurse: open parts are on a stack, and the text of a term that is
 * nested deeper than the stack is cut anyway. Every step appends at least one byte, and the
 * first step that exceeds DT_TERM_MAX is the last.
 */
#include "text/term.h"

#include <stdatomic.h>
#include <string.h>

#include "text/binary.h"
#include "text/bytes.h"
#include "text/float.h"
#include "text/heap.h"
#include "text/id.h"
#include "text/kind.h"
#include "text/put.h"
#include "text/record.h"

struct writer {
    struct dt_text *text;
    ErlNifEnv *env;
    char *start;
    const char *limit; /* the end of a text of DT_TERM_MAX bytes, or of the buffer */
    bool shape;        /* of terms, not contents */
    bool copied;       /* the runtime has copied a large binary: the text ends before another one */
    bool cut;          /* the text is too long, or ends before a term that is not written */
    bool full;         /* the buffer is full */
};

static inline void check(struct writer *w, bool put) {
    if (!put)
        w->full = true;
    if (!put || w->text->next > w->limit)
        w->cut = true;
}

static inline void append(struct writer *w, const char *s) {
    check(w, dt_put_string(w->text, s));
}

/* Appends punctuation. */
static inline void append_char(struct writer *w, char c) {
    bool put = dt_put_room(w->text) > 1;

    if (put)
        *w->text->next++ = c;
    check(w, put);
}

/* Whether a text that exceeds the limit by one word and a comma still fits. */
static inline bool has_room_past_limit(const struct writer *w) {
    enum { WORD = DT_WORD_MAX + 1 };

    _Static_assert((int)WORD >= DT_DIGITS + 2, "a number with a comma and a sign is longer");
    return w->text->buffer + sizeof w->text->buffer - w->limit > WORD;
}

static void append_number(struct writer *w, unsigned long number) {
    check(w, dt_put_number(w->text, number));
}

/* -- Bytes -------------------------------------------------------------------------- */

/* Copies the whole array, then releases the unused bytes; DT_TEXT_SIZE is larger. */
static inline void append_byte(struct writer *w, const struct dt_byte *byte) {
    bool put = dt_put(w->text, byte->text, sizeof byte->text);

    if (put)
        w->text->next -= sizeof byte->text - byte->size;
    check(w, put);
}

/* A number up to 255 and the comma before it; returns their end. Writes a few bytes beyond it. */
static inline char *put_after_comma(char *to, unsigned long byte) {
    memcpy(to, dt_bytes_as_number[byte].text, sizeof dt_bytes_as_number->text);
    return to + dt_bytes_as_number[byte].size;
}

/* -- Integers ----------------------------------------------------------------------- */

/* The text of an integer between the two may fit. They are in an environment that is never freed,
   because callbacks read them. */
static ERL_NIF_TERM least, greatest;

static bool is_short_enough(ERL_NIF_TERM integer) {
    return enif_compare(integer, least) >= 0 && enif_compare(integer, greatest) <= 0;
}

static void append_long(struct writer *w, long i) {
    if (i < 0)
        append_char(w, '-');
    append_number(w, i < 0 ? 0UL - (unsigned long)i : (unsigned long)i);
}

static inline bool get_long(struct writer *w, ERL_NIF_TERM term, long *i) {
    return dt_small(term, i) || enif_get_long(w->env, term, i);
}

static void write_integer(struct writer *w, ERL_NIF_TERM integer) {
    long i;

    if (get_long(w, integer, &i)) {
        append_long(w, i);
    } else if (is_short_enough(integer)) {
        check(w, dt_put_runtime(w->text, integer));
    } else {
        w->cut = true;
    }
}

/* -- Other terms without subterms ----------------------------------------------------- */

static void write_atom(struct writer *w, ERL_NIF_TERM atom) {
    const char *start = w->text->next;
    bool put = dt_put_cached(w->text, DT_AS_RUNTIME, atom);

    if (!put && (put = dt_put_runtime(w->text, atom)))
        dt_cache_store_word(w->text->cache, DT_AS_RUNTIME, atom, start,
                            (size_t)(w->text->next - start));
    check(w, put);
}

static void write_handle(struct writer *w, ERL_NIF_TERM handle) {
    check(w, dt_put_handle(w->text, w->env, handle));
}

static void write_float(struct writer *w, ERL_NIF_TERM term) {
    check(w, dt_put_float(w->text, w->env, term));
}

/* The runtime's text of a fun is short. */
static void write_fun(struct writer *w, ERL_NIF_TERM fun) {
    check(w, dt_put_runtime(w->text, fun));
}

/* A term of a kind newer than this library: the runtime may not write it in bounded time. */
static void write_unknown(struct writer *w) {
    append(w, "<term>");
}

/* The precision limits the number of bytes; each takes at least two characters. */
static void write_bits(struct writer *w, ERL_NIF_TERM bits) {
    char raw[DT_ATOM_MAX];
    int n = enif_snprintf(raw, sizeof raw, "%.*T", DT_TERM_MAX / 2, bits);

    if (n > 2 && raw[0] == '<' && raw[1] == '<')
        append(w, raw);
    else
        write_unknown(w);
}

static void write_bytes(struct writer *w, const unsigned char *bytes, size_t n) {
    size_t i = 1;

    append(w, "<<");
    if (n > 0)
        append_number(w, bytes[0]);
    if (has_room_past_limit(w))
        for (char *to = w->text->next; i < n && to <= w->limit; w->text->next = to)
            to = put_after_comma(to, bytes[i++]);
    for (; i < n && !w->cut; i++)
        append_byte(w, &dt_bytes_as_number[bytes[i]]);
    append(w, ">>");
}

/* False for a bitstring that is not a binary. */
static bool get_binary(struct writer *w, ERL_NIF_TERM term, ErlNifBinary *binary) {
    if (!enif_inspect_binary(w->env, term, binary))
        return false;
    w->copied = dt_binary_is_large_copy(w->env, term, binary);
    return true;
}

static void write_binary(struct writer *w, ERL_NIF_TERM term) {
    ErlNifBinary binary;
    unsigned kind;
    size_t n;

    if (!get_binary(w, term, &binary)) {
        write_bits(w, term);
        return;
    }
    n = binary.size <= DT_TERM_MAX ? binary.size : DT_TERM_MAX + 1;
    kind = dt_bytes_kind(binary.data, n);
    if (kind >= DT_UNPRINTABLE) {
        write_bytes(w, binary.data, n);
        return;
    }
    append(w, "<<\"");
    if (kind == DT_PLAIN)
        check(w, dt_put_bytes(w->text, binary.data, n));
    else
        for (size_t i = 0; i < n && !w->cut; i++)
            append_byte(w, &dt_bytes_in_binary[binary.data[i]]);
    append(w, "\">>");
}

/* Writes a list as a string if the part that fits into the text is printable. Otherwise writes
   nothing and returns false. */
static bool write_string(struct writer *w, ERL_NIF_TERM list) {
    char *start = w->text->next;
    ERL_NIF_TERM head;
    unsigned n = 0;
    long c = 0;
    bool string = true;

    append_char(w, '"');
    for (; string && n <= DT_TERM_MAX && dt_list_cell(w->env, list, &head, &list); n++) {
        string = get_long(w, head, &c) && c >= 0 && c <= 255 &&
                 dt_bytes_in_list[c].kind != DT_UNPRINTABLE;
        if (string && !w->cut)
            append_byte(w, &dt_bytes_in_list[c]);
    }
    if (string && n > 0 && enif_is_list(w->env, list)) {
        append_char(w, '"');
        return true;
    }
    w->text->next = start;
    w->cut = false;
    return false;
}

/* -- Terms in terms ------------------------------------------------------------------- */

/* Each open part has written at least one byte. */
enum { DEPTH = DT_TERM_MAX };

/* PAIRS: keys and values of a map, in arrays. */
enum kind { TUPLE, LIST, MAP, RECORD, PAIRS };

static const struct {
    char open, close;
} marks[] = {
    [TUPLE] = {'{', '}'},  [LIST] = {'[', ']'},  [MAP] = {'{', '}'},
    [RECORD] = {'{', '}'}, [PAIRS] = {'{', '}'},
};

/* A partially written term. */
struct part {
    enum kind kind;
    bool begun;
    bool value; /* in a map: the next term is the value of the last key */
    union {
        struct {
            const ERL_NIF_TERM *next, *end;
        } tuple;
        struct {
            const ERL_NIF_TERM *key, *next,
                *end;      /* the next key and value, the end of the values */
        } record;          /* or pairs */
        ERL_NIF_TERM rest; /* the rest of a list */
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

/* Returns false for a term that is not a tuple. */
static bool open_tuple(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    const ERL_NIF_TERM *el;
    struct part *part;
    int size;

    if (!enif_get_tuple(w->env, term, &size, &el))
        return false;
    if (!(part = open_part(w, stack, TUPLE)))
        return true;
    part->tuple.next = el;
    part->tuple.end = el + size;
    stack->depth++;
    append_char(w, marks[TUPLE].open);
    return true;
}

static void open_elements(struct writer *w, struct stack *stack, ERL_NIF_TERM list) {
    struct part *part = open_part(w, stack, LIST);

    if (!part)
        return;
    part->rest = list;
    stack->depth++;
    append_char(w, marks[LIST].open);
}

static void open_list(struct writer *w, struct stack *stack, ERL_NIF_TERM list) {
    if (!write_string(w, list))
        open_elements(w, stack, list);
}

/* close_part() destroys the iterator, because the runtime allocates memory for that of a large map.
 */
static void open_map(struct writer *w, struct stack *stack, ERL_NIF_TERM map) {
    struct part *part = open_part(w, stack, MAP);

    if (!part || !enif_map_iterator_create(w->env, map, &part->map, ERL_NIF_MAP_ITERATOR_FIRST))
        return;
    stack->depth++;
    append_char(w, '#');
    append_char(w, marks[MAP].open);
}

static void write_name(struct writer *w, ERL_NIF_TERM name) {
    if (enif_is_atom(w->env, name))
        write_atom(w, name);
    else
        write_unknown(w);
}

static void open_record(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    struct part *part = open_part(w, stack, RECORD);
    struct dt_record record;

    if (!part || !dt_record_get(w->env, term, &record))
        return;
    part->record.key = record.keys;
    part->record.next = record.values;
    part->record.end = record.values + record.fields;
    stack->depth++;
    append_char(w, '#');
    write_name(w, record.module);
    append_char(w, ':');
    write_name(w, record.name);
    append_char(w, marks[RECORD].open);
}

static void open_pairs(struct writer *w, struct stack *stack, const ERL_NIF_TERM keys[],
                       const ERL_NIF_TERM values[], unsigned count) {
    struct part *part = open_part(w, stack, PAIRS);

    if (!part)
        return;
    part->record.key = keys;
    part->record.next = values;
    part->record.end = values + count;
    stack->depth++;
    append_char(w, '#');
    append_char(w, marks[PAIRS].open);
}

static inline void separate(struct writer *w, const struct part *part) {
    if (part->begun)
        append_char(w, ',');
}

/* Most elements are words: small integers, or terms whose texts are cached. These functions write
   consecutive words to `to` without checking the remaining room for each. Shapes show neither
   integers nor pids, so they do not use these functions. */
static inline bool takes_words(const struct writer *w) {
    return !w->shape && has_room_past_limit(w);
}

/* Returns the end, or NULL for a term that is not a word. */
static inline char *put_word(const struct writer *w, char *to, bool begun, ERL_NIF_TERM term) {
    const struct dt_cached_word *cached;
    long i;

    if (dt_small(term, &i)) {
        if (begun && i >= 0 && i < DT_BYTES)
            return put_after_comma(to, (unsigned long)i);
        if (begun)
            *to++ = ',';
        if (i < 0)
            *to++ = '-';
        return dt_digits(to, i < 0 ? 0UL - (unsigned long)i : (unsigned long)i);
    }
    if (!(cached = dt_cache_find_word(w->text->cache, DT_AS_RUNTIME, term)))
        return NULL;
    if (begun)
        *to++ = ',';
    memcpy(to, cached->text, sizeof cached->text);
    return to + cached->size;
}

static inline void put_words_of_tuple(struct writer *w, struct part *part) {
    const ERL_NIF_TERM *next = part->tuple.next, *last = part->tuple.end;
    const char *limit = w->limit;
    char *to = w->text->next, *end;

    if (!part->begun && next < last && (end = put_word(w, to, false, *next))) {
        part->begun = true;
        to = end;
        next++;
    }
    while (part->begun && next < last && to <= limit && (end = put_word(w, to, true, *next))) {
        to = end;
        next++;
    }
    part->tuple.next = next;
    w->text->next = to;
    check(w, true);
}

/* Consecutive numbers up to 255, with which many long lists begin. Returns their end. */
static inline char *put_numbers_of_list(char *to, const char *limit, ERL_NIF_TERM *list) {
    /* A copy, so that the compiler does not reload it after each write. */
    const struct dt_heap_marks marks = dt_heap_marks;
    ERL_NIF_TERM rest = *list, distance = 0;

    while (to <= limit && dt_is_cell(rest, marks.list)) {
        const ERL_NIF_TERM head = *dt_heap_of(rest);
        const ERL_NIF_TERM number = head >> DT_SMALL_SHIFT; /* a negative one becomes large */

        if (!dt_is_small(head, marks.small) || number >= DT_BYTES)
            break;
        to = put_after_comma(to, number);
        rest = dt_tail(rest, &distance);
    }
    *list = rest;
    return to;
}

static inline void put_words_of_list(struct writer *w, struct part *part) {
    ERL_NIF_TERM rest = part->rest, head, tail;
    const char *limit = w->limit;
    char *to = w->text->next, *end;

    if (!part->begun && dt_list_cell(w->env, rest, &head, &tail) &&
        (end = put_word(w, to, false, head))) {
        part->begun = true;
        to = end;
        rest = tail;
    }
    while (part->begun && (to = put_numbers_of_list(to, limit, &rest)) <= limit &&
           dt_list_cell(w->env, rest, &head, &tail) && (end = put_word(w, to, true, head))) {
        to = end;
        rest = tail;
    }
    part->rest = rest;
    w->text->next = to;
    check(w, true);
}

static bool next_of_tuple(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    if (takes_words(w))
        put_words_of_tuple(w, part);
    if (w->cut)
        return true;
    if (part->tuple.next == part->tuple.end)
        return false;
    separate(w, part);
    *term = *part->tuple.next++;
    return true;
}

static bool next_of_list(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    if (takes_words(w))
        put_words_of_list(w, part);
    if (w->cut)
        return true;
    if (dt_list_cell(w->env, part->rest, term, &part->rest)) {
        separate(w, part);
        return true;
    }
    if (part->rest == dt_empty_list)
        return false;
    append_char(w, '|');
    *term = part->rest;
    part->rest = dt_empty_list;
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
        separate(w, part);
        *term = key;
    }
    part->value = !part->value;
    return true;
}

static bool next_of_record(struct writer *w, struct part *part, ERL_NIF_TERM *term) {
    if (part->record.next == part->record.end)
        return false;
    separate(w, part);
    write_name(w, *part->record.key++);
    append(w, part->kind == PAIRS ? "=>" : "=");
    *term = *part->record.next++;
    return true;
}

typedef bool next_of(struct writer *w, struct part *part, ERL_NIF_TERM *term);

static next_of *const next[] = {
    [TUPLE] = next_of_tuple,   [LIST] = next_of_list,    [MAP] = next_of_map,
    [RECORD] = next_of_record, [PAIRS] = next_of_record,
};

static void close_part(struct writer *w, struct stack *stack) {
    struct part *part = &stack->parts[--stack->depth];

    if (part->kind == MAP)
        enif_map_iterator_destroy(w->env, &part->map);
}

/* Closes finished parts, and gets the next term to write. False at the end. */
static bool next_term(struct writer *w, struct stack *stack, ERL_NIF_TERM *term) {
    while (stack->depth > 0 && !w->cut) {
        struct part *part = &stack->parts[stack->depth - 1];

        if (next[part->kind](w, part, term)) {
            part->begun = true;
            return !w->cut;
        }
        append_char(w, marks[part->kind].close);
        close_part(w, stack);
    }
    return false;
}

/* -- Contents or their shape ------------------------------------------------------------ */

static void write_contents(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    /* Most messages are tuples: so only one function of erl_nif is called for them. */
    if (dt_kind_guess(term) == DT_TUPLE && open_tuple(w, stack, term))
        return;
    switch (dt_kind(w->env, term)) {
    case DT_ATOM:
        write_atom(w, term);
        break;
    case DT_INTEGER:
        write_integer(w, term);
        break;
    case DT_PID:
    case DT_PORT:
    case DT_REFERENCE:
        write_handle(w, term);
        break;
    case DT_FLOAT:
        write_float(w, term);
        break;
    case DT_FUN:
        write_fun(w, term);
        break;
    case DT_BINARY:
    case DT_BITSTRING:
        write_binary(w, term);
        break;
    case DT_TUPLE:
        (void)open_tuple(w, stack, term);
        break;
    case DT_LIST:
        open_list(w, stack, term);
        break;
    case DT_MAP:
        open_map(w, stack, term);
        break;
    case DT_RECORD:
        open_record(w, stack, term);
        break;
    case DT_UNKNOWN:
        write_unknown(w);
    }
}

static void write_sized(struct writer *w, const char *type, unsigned long size, const char *end) {
    append_char(w, '{');
    append(w, type);
    append_char(w, ',');
    append_number(w, size);
    append(w, end);
}

static void write_list_shape(struct writer *w, ERL_NIF_TERM list) {
    enum { COUNTED = 1000 };
    unsigned long n = 0;
    ERL_NIF_TERM head;

    while (n < COUNTED && dt_list_cell(w->env, list, &head, &list))
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

    switch (dt_kind(w->env, term)) {
    case DT_ATOM:
        write_atom(w, term);
        break;
    case DT_TUPLE:
        (void)open_tuple(w, stack, term);
        break;
    case DT_LIST:
        write_list_shape(w, term);
        break;
    case DT_MAP:
        write_sized(w, "map", enif_get_map_size(w->env, term, &size) ? size : 0, "}");
        break;
    case DT_RECORD:
        open_record(w, stack, term);
        break;
    case DT_BINARY:
        write_sized(w, "binary", get_binary(w, term, &binary) ? binary.size : 0, "}");
        break;
    case DT_BITSTRING:
        append(w, "bitstring()");
        break;
    case DT_INTEGER:
        append(w, "integer()");
        break;
    case DT_FLOAT:
        append(w, "float()");
        break;
    case DT_PID:
        append(w, "pid()");
        break;
    case DT_PORT:
        append(w, "port()");
        break;
    case DT_REFERENCE:
        append(w, "reference()");
        break;
    case DT_FUN:
        append(w, "fun()");
        break;
    case DT_UNKNOWN:
        append(w, "term()");
    }
}

/* -- The text --------------------------------------------------------------------------- */

static atomic_bool shapes;

void dt_term_show_shapes(bool show) {
    atomic_store_explicit(&shapes, show, memory_order_relaxed);
}

static struct writer begin(struct dt_text *text, ErlNifEnv *env) {
    const size_t room = dt_put_room(text);

    return (struct writer){.text = text,
                           .env = env,
                           .start = text->next,
                           .limit = text->next + (room < DT_TERM_MAX ? room : DT_TERM_MAX),
                           .shape = atomic_load_explicit(&shapes, memory_order_relaxed)};
}

static inline void write_term(struct writer *w, struct stack *stack, ERL_NIF_TERM term) {
    if (w->copied && enif_is_binary(w->env, term))
        w->cut = true;
    else if (w->shape)
        write_shape(w, stack, term);
    else
        write_contents(w, stack, term);
}

static void write_open_parts(struct writer *w, struct stack *stack) {
    ERL_NIF_TERM term;

    while (next_term(w, stack, &term))
        write_term(w, stack, term);
}

static inline const char *end(struct writer *w, struct stack *stack) {
    while (stack->depth > 0)
        close_part(w, stack);
    return w->full ? dt_put_end(w->text, w->start, false)
                   : dt_put_cut_end(w->text, w->start, DT_TERM_MAX, !w->cut);
}

const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term) {
    struct writer w = begin(text, env);
    struct stack stack;

    stack.depth = 0;
    do
        write_term(&w, &stack, term);
    while (next_term(&w, &stack, &term));
    return end(&w, &stack);
}

const char *dt_text_arguments(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM list) {
    struct writer w = begin(text, env);
    struct stack stack;

    stack.depth = 0;
    open_elements(&w, &stack, list);
    write_open_parts(&w, &stack);
    return end(&w, &stack);
}

const char *dt_text_map(struct dt_text *text, ErlNifEnv *env, const ERL_NIF_TERM keys[],
                        const ERL_NIF_TERM values[], unsigned count) {
    struct writer w = begin(text, env);
    struct stack stack;

    stack.depth = 0;
    open_pairs(&w, &stack, keys, values, count);
    write_open_parts(&w, &stack);
    return end(&w, &stack);
}

bool dt_term_calibrate(ErlNifEnv *env, ERL_NIF_TERM from, ERL_NIF_TERM to) {
    static ErlNifEnv *lasting;

    if (lasting)
        return true;
    if (!enif_is_number(env, from) || !enif_is_number(env, to) || !dt_bytes_calibrate(env) ||
        !dt_kind_calibrate(env) || !(lasting = enif_alloc_env()))
        return false;
    least = enif_make_copy(lasting, from);
    greatest = enif_make_copy(lasting, to);
    return true;
}
