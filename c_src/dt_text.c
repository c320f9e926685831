#include "dt_text.h"

#include <string.h>

/*
 * The runtime's own %T writes pids, ports, references and almost all atoms as
 * Erlang does. Two things about its atoms are put right here, for identifiers:
 * it does not quote reserved words, and quotes names with an @ (node names).
 */

enum { RESERVED_MAX = 64 };

static ERL_NIF_TERM reserved[RESERVED_MAX];
static unsigned reserved_count;

bool dt_text_reserve(ErlNifEnv *env, ERL_NIF_TERM words) {
    ERL_NIF_TERM word;
    unsigned count = 0;

    while (count < RESERVED_MAX && enif_get_list_cell(env, words, &word, &words)) {
        if (!enif_is_atom(env, word))
            return false;
        reserved[count++] = word;
    }
    reserved_count = count;
    return enif_is_empty_list(env, words);
}

static bool is_reserved(ERL_NIF_TERM atom) {
    for (unsigned i = 0; i < reserved_count; i++)
        if (reserved[i] == atom)
            return true;
    return false;
}

static bool put(struct dt_text *text, const char *s, size_t n) {
    if (n >= (size_t)(text->buffer + sizeof text->buffer - text->next))
        return false;
    memcpy(text->next, s, n);
    text->next += n;
    return true;
}

static bool put_string(struct dt_text *text, const char *s) {
    return put(text, s, strlen(s));
}

/* Ends the text that began at `start`; if it is not whole, takes it back. */
static const char *finish(struct dt_text *text, char *start, bool whole) {
    if (!whole || !put(text, "", 1)) {
        text->next = start;
        return NULL;
    }
    return start;
}

/* %T of a pid, port or reference: four or five numbers. */
static bool put_handle(struct dt_text *text, ERL_NIF_TERM handle) {
    char raw[DT_HANDLE_MAX + 1];
    int n = enif_snprintf(raw, sizeof raw, "%T", handle);

    return n > 0 && (size_t)n < sizeof raw && put(text, raw, (size_t)n);
}

/*
 * What may stand in an unquoted atom: letters and digits of Latin-1, _ and @, a
 * lower-case letter first. In UTF-8 the letters past ASCII are C3 80 to C3 BF but
 * for C3 97 and C3 B7 (the signs × and ÷); the lower-case ones begin at C3 9F.
 */
static bool is_plain_name(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool lower = c >= 'a' && c <= 'z';
        bool plain =
            lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@';

        if (c == 0xC3 && i + 1 < n) {
            unsigned char d = (unsigned char)s[i + 1];
            plain = d != 0x97 && d != 0xB7;
            lower = plain && d >= 0x9F;
        }
        if (!plain || (i == 0 && !lower))
            return false;
        if (c == 0xC3)
            i++;
    }
    return n > 0;
}

/* What %T writes in a quoted atom, and what Erlang writes there. */
static const struct {
    const char *from, *to;
} escapes[] = {
    {"\\\\", "\\\\"}, /* an escaped backslash begins no other escape */
    {"\\033", "\\e"},
    {"\x7F", "\\d"},
};

static bool put_escaped(struct dt_text *text, const char *s) {
    enum { ESCAPES = sizeof escapes / sizeof *escapes };

    while (*s) {
        size_t i = 0;

        while (i < ESCAPES && strncmp(s, escapes[i].from, strlen(escapes[i].from)) != 0)
            i++;
        if (!(i < ESCAPES ? put_string(text, escapes[i].to) : put(text, s, 1)))
            return false;
        s += i < ESCAPES ? strlen(escapes[i].from) : 1;
    }
    return true;
}

static bool put_atom(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM atom) {
    char raw[DT_ATOM_MAX + 1];
    int n;

    if (!enif_is_atom(env, atom))
        return false;
    n = enif_snprintf(raw, sizeof raw, "%T", atom);
    if (n <= 0 || (size_t)n >= sizeof raw)
        return false;
    if (is_reserved(atom))
        return put_string(text, "'") && put_string(text, raw) && put_string(text, "'");
    if (raw[0] != '\'')
        return put(text, raw, (size_t)n);
    if (is_plain_name(raw + 1, (size_t)n - 2))
        return put(text, raw + 1, (size_t)n - 2);
    return put_escaped(text, raw);
}

static bool put_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id) {
    const ERL_NIF_TERM *name_node;
    int arity;

    if (enif_is_pid(env, id) || enif_is_port(env, id) || enif_is_ref(env, id))
        return put_handle(text, id);
    if (enif_get_tuple(env, id, &arity, &name_node) && arity == 2)
        return put_string(text, "{") && put_atom(text, env, name_node[0]) &&
               put_string(text, ",") && put_atom(text, env, name_node[1]) && put_string(text, "}");
    return put_atom(text, env, id);
}

const char *dt_text_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id) {
    char *start = text->next;

    return finish(text, start, put_id(text, env, id));
}

static bool put_arity(struct dt_text *text, unsigned long arity) {
    char digits[24];
    int n = enif_snprintf(digits, sizeof digits, "/%lu", arity);

    return n > 0 && put(text, digits, (size_t)n);
}

const char *dt_text_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                        ERL_NIF_TERM function, unsigned long arity) {
    char *start = text->next;

    return finish(text, start,
                  put_atom(text, env, module) && put_string(text, ":") &&
                      put_atom(text, env, function) && put_arity(text, arity));
}

/* -- Text of any length --------------------------------------------------------------- */

/* The length of the UTF-8 character that the `n` bytes at s begin with, 0 if it is none. */
static size_t utf8_length(const char *s, size_t n) {
    unsigned char c = (unsigned char)*s;
    size_t length = c < 0x80                ? 1
                    : c >= 0xC2 && c < 0xE0 ? 2
                    : c >= 0xE0 && c < 0xF0 ? 3
                    : c >= 0xF0 && c < 0xF5 ? 4
                                            : 0;

    for (size_t i = 1; i < length; i++)
        if (i == n || ((unsigned char)s[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

/* One character of `n` bytes or fewer: what is no UTF-8 is Latin-1, as %T writes the bytes
   160 to 255 of a string; a NUL would end the text. Answers how many bytes it was, 0 when
   the buffer is full. */
static size_t put_character(struct dt_text *text, const char *s, size_t n) {
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t length = utf8_length(s, n);
    unsigned char c = (unsigned char)*s;
    char latin1[2] = {(char)(0xC0 | c >> 6), (char)(0x80 | (c & 0x3F))};

    if (c == '\0')
        return put_string(text, replacement) ? 1 : 0;
    if (length == 0)
        return put(text, latin1, sizeof latin1) ? 1 : 0;
    return put(text, s, length) ? length : 0;
}

/* The first `max` bytes of text that `n` bytes make, at a character boundary; marked by "..."
   if that, or what was read so far, is not all. */
static const char *put_cut(struct dt_text *text, const char *s, size_t n, size_t max, bool all) {
    static const char mark[] = "...";
    char *start = text->next, *keep = start;
    const char *end = s + n;

    while (s < end && (size_t)(text->next - start) <= max) {
        size_t length = put_character(text, s, (size_t)(end - s));

        if (length == 0)
            return finish(text, start, false);
        s += length;
        if ((size_t)(text->next - start) <= max - strlen(mark))
            keep = text->next;
    }
    if (all && (size_t)(text->next - start) <= max)
        return finish(text, start, true);
    text->next = keep;
    return finish(text, start, put_string(text, mark));
}

/* Longer than the text may be, so that a character cut in two by its end is past that. */
enum { BEYOND = 8 };

/*
 * The precision bounds what %T walks: each element that it counts is a byte or more
 * of text, so it gives up after the text is long enough. Testing whether a list or
 * binary is printable, and large integers, are not bounded by it.
 */
const char *dt_text_term(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term) {
    char raw[DT_TERM_MAX + BEYOND];
    int n = enif_snprintf(raw, sizeof raw, "%.*T", (int)sizeof raw, term);

    (void)env;
    return n < 0 ? NULL : put_cut(text, raw, strlen(raw), DT_TERM_MAX, true);
}

/* -- Strings --------------------------------------------------------------------- */

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

/* An element of a string's list: a byte, or a character past those. */
static bool gather_integer(struct gathered *raw, unsigned c) {
    char byte = (char)c;

    if (c > 0xFF)
        return gather_character(raw, c);
    gather_bytes(raw, &byte, 1);
    return true;
}

enum gathering { GATHERED, GATHERED_PART, NOT_A_STRING };

/* Walks iodata in its order, lists within lists by a stack of what follows them. */
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
    return put_cut(text, raw.bytes, raw.n, DT_STRING_MAX, gathering == GATHERED);
}

/* A name of Latin-1 as it is; of another, %T, without the quotes that it puts around. */
const char *dt_text_name(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM name) {
    char chars[DT_ATOM_MAX + 1];
    struct gathered raw = {.n = 0};
    size_t quotes;
    int n;

    if (!enif_is_atom(env, name))
        return dt_text_string(text, env, name);
    if ((n = enif_get_atom(env, name, chars, sizeof chars, ERL_NIF_LATIN1)) > 0) {
        for (int i = 0; i < n - 1; i++)
            (void)gather_character(&raw, (unsigned char)chars[i]);
        return put_cut(text, raw.bytes, raw.n, DT_STRING_MAX, true);
    }
    n = enif_snprintf(chars, sizeof chars, "%T", name);
    if (n <= 0 || (size_t)n >= sizeof chars)
        return NULL;
    quotes = chars[0] == '\'' && n > 1 ? 1 : 0;
    return put_cut(text, chars + quotes, (size_t)n - 2 * quotes, DT_STRING_MAX, true);
}
