#include "text/string.h"

#include <string.h>

#include "text/put.h"

/*
 * UTF-8 by the range of the first byte: the length of the character, and the range of its second
 * byte. Further bytes are 80 to BF. The table leaves out overlong forms, surrogates, and characters
 * past U+10FFFF.
 */
static const struct {
    unsigned char first, last, length, least, greatest;
} utf8[] = {
    {0x00, 0x7F, 1, 0x00, 0x00}, {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static bool is_between(unsigned char c, unsigned char least, unsigned char greatest) {
    return c >= least && c <= greatest;
}

/* The length of the UTF-8 character at the start of the `n` bytes at s, or 0. */
static size_t utf8_length(const char *s, size_t n) {
    enum { FIRSTS = sizeof utf8 / sizeof *utf8 };
    const unsigned char *bytes = (const unsigned char *)s;
    size_t first = 0, length;

    while (first < FIRSTS && !is_between(*bytes, utf8[first].first, utf8[first].last))
        first++;
    if (first == FIRSTS || (length = utf8[first].length) > n ||
        (length > 1 && !is_between(bytes[1], utf8[first].least, utf8[first].greatest)))
        return 0;
    for (size_t i = 2; i < length; i++)
        if (!is_between(bytes[i], 0x80, 0xBF))
            return 0;
    return length;
}

/* Writes the first character of `n` bytes. A byte that is not UTF-8 is read as Latin-1, as %T does
   for the bytes 160 to 255 of a string; NUL, which would end the text, becomes U+FFFD. Returns the
   number of consumed bytes, 0 if the buffer is full. */
static size_t put_character(struct dt_text *text, const char *s, size_t n) {
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t length = utf8_length(s, n);
    unsigned char c = (unsigned char)*s;
    char latin1[2] = {(char)(0xC0 | c >> 6), (char)(0x80 | (c & 0x3F))};

    if (c == '\0')
        return dt_put_string(text, replacement) ? 1 : 0;
    if (length == 0)
        return dt_put(text, latin1, sizeof latin1) ? 1 : 0;
    return dt_put(text, s, length) ? length : 0;
}

/* Writes the text of `n` bytes. Unless they are `all` of the string, it is cut. */
static const char *put_cut(struct dt_text *text, const char *s, size_t n, bool all) {
    char *start = text->next;
    const char *end = s + n;

    while (s < end && (size_t)(text->next - start) <= DT_STRING_MAX) {
        size_t length = put_character(text, s, (size_t)(end - s));

        if (length == 0)
            return dt_put_end(text, start, false);
        s += length;
    }
    return dt_put_cut_end(text, start, DT_STRING_MAX, all);
}

/* Extra bytes beyond the longest text, so that a character that is split at the end is beyond the
 * text. */
enum { BEYOND = 8 };

struct gathered {
    size_t n;
    char bytes[DT_STRING_MAX + BEYOND];
};

static bool is_full(const struct gathered *raw) {
    return raw->n == sizeof raw->bytes;
}

static void gather_bytes(struct gathered *raw, const void *bytes, size_t n) {
    size_t room = sizeof raw->bytes - raw->n;

    memcpy(raw->bytes + raw->n, bytes, n < room ? n : room);
    raw->n += n < room ? n : room;
}

static bool gather_character(struct gathered *raw, unsigned c) {
    char utf8[4] = {(char)c};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return false;
    for (size_t i = n; n > 1 && i-- > 1; c >>= 6)
        utf8[i] = (char)(0x80 | (c & 0x3F));
    if (n > 1)
        utf8[0] = (char)(0xF00 >> n | c);
    gather_bytes(raw, utf8, n);
    return true;
}

/* An element of a string's list: a byte or, above 255, a character. */
static bool gather_integer(struct gathered *raw, unsigned c) {
    char byte = (char)c;

    if (c > 0xFF)
        return gather_character(raw, c);
    gather_bytes(raw, &byte, 1);
    return true;
}

enum gathering { GATHERED, GATHERED_PART, NOT_A_STRING };

/* Walks iodata in order. For nested lists, the stack holds the tails. */
static enum gathering gather(struct gathered *raw, ErlNifEnv *env, ERL_NIF_TERM term) {
    enum { DEPTH = 256, CELLS = 8192 };
    ERL_NIF_TERM rest[DEPTH], head, tail;
    unsigned depth = 0, cells = 0, c;
    ErlNifBinary binary;

    for (;;) {
        if (is_full(raw) || cells++ == CELLS)
            return GATHERED_PART;
        if (enif_get_list_cell(env, term, &head, &tail)) {
            if (enif_get_uint(env, head, &c)) {
                if (!gather_integer(raw, c))
                    return NOT_A_STRING;
                term = tail;
                continue;
            }
            if (!enif_is_empty_list(env, tail)) {
                if (depth == DEPTH)
                    return GATHERED_PART;
                rest[depth++] = tail;
            }
            term = head;
            continue;
        }
        if (enif_inspect_binary(env, term, &binary))
            gather_bytes(raw, binary.data, binary.size);
        else if (!enif_is_empty_list(env, term))
            return NOT_A_STRING;
        if (depth == 0)
            return GATHERED;
        term = rest[--depth];
    }
}

const char *dt_text_string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM string) {
    struct gathered raw = {.n = 0};
    enum gathering gathering = gather(&raw, env, string);

    if (gathering == NOT_A_STRING)
        return NULL;
    return put_cut(text, raw.bytes, raw.n, gathering == GATHERED);
}

/* A Latin-1 atom unchanged; another atom as %T writes it, without its quotes. */
static bool gather_atom(struct gathered *raw, ErlNifEnv *env, ERL_NIF_TERM atom) {
    char chars[DT_ATOM_MAX + 1];
    size_t quotes;
    int n;

    if ((n = enif_get_atom(env, atom, chars, sizeof chars, ERL_NIF_LATIN1)) > 0) {
        for (int i = 0; i < n - 1; i++)
            (void)gather_character(raw, (unsigned char)chars[i]);
        return true;
    }
    n = enif_snprintf(chars, sizeof chars, "%T", atom);
    if (n <= 0 || (size_t)n >= sizeof chars)
        return false;
    quotes = chars[0] == '\'' && n > 1 ? 1 : 0;
    gather_bytes(raw, chars + quotes, (size_t)n - 2 * quotes);
    return true;
}

const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name) {
    struct gathered raw = {.n = 0};

    if (!enif_is_atom(env, name))
        return dt_text_string(text, env, name);
    return gather_atom(&raw, env, name) ? put_cut(text, raw.bytes, raw.n, true) : NULL;
}

const char *dt_text_dotted(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM list) {
    struct gathered raw = {.n = 0};
    ERL_NIF_TERM head;

    /* Each element but the first has a dot, which bounds the loop: an atom may be empty. */
    for (bool is_first = true; !is_full(&raw) && enif_get_list_cell(env, list, &head, &list);
         is_first = false) {
        if (!is_first)
            gather_bytes(&raw, ".", 1);
        if (!enif_is_atom(env, head) || !gather_atom(&raw, env, head))
            gather_bytes(&raw, "_", 1);
    }
    return put_cut(text, raw.bytes, raw.n, !is_full(&raw));
}
