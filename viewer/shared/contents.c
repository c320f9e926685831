#include "shared/contents.h"

#include <stdbool.h>
#include <string.h>

#include "shared/texts.h"

enum { DIGITS_MOST = 15, NUMBERS_MOST = 8, WORD_MOST = 31, FILE_MOST = 80, HANDLE_MOST = 64 };

/* A piece of the text, from `begin` to `end`. */
struct piece {
    const char *begin, *end;
};

static void keep(GString *to, struct piece piece) {
    g_string_append_len(to, piece.begin, piece.end - piece.begin);
}

/* The text ends here, or only the truncation mark follows. */
static bool is_cut(const char *end) {
    return !*end || strcmp(end, "...") == 0;
}

static const char *past(const char *s, const char *letters) {
    return s + strspn(s, letters);
}

/* -- Strings and binaries --------------------------------------------------------------- */

/* Returns the end of the string whose opening quote is at `s`; counts its characters. */
static const char *past_string(const char *s, unsigned *count) {
    for (s++; *s && *s != '"' && !is_cut(s); s++) {
        s += *s == '\\' && s[1];
        *count += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return *s == '"' ? s + 1 : s;
}

/* A source file in a stack trace: "src/shop.erl". */
static bool is_file(struct piece string) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./";
    static const char before[] = "{file,";
    static const char *const after[] = {".erl\"", ".ex\"", ".exs\"", ".yrl\"", ".xrl\"", ".hrl\""};
    const char *end = past(string.begin + 1, letters) + 1;
    bool is_source = false;

    for (size_t i = 0; i < G_N_ELEMENTS(after); i++)
        is_source |= end - string.begin > (ptrdiff_t)strlen(after[i]) &&
                     memcmp(end - strlen(after[i]), after[i], strlen(after[i])) == 0;
    return is_source && end == string.end && end - string.begin <= FILE_MOST &&
           strncmp(string.begin - strlen(before), before, strlen(before)) == 0;
}

static const char *put_string(GString *to, const char *text, const char *s) {
    unsigned count = 0;
    struct piece string = {s, past_string(s, &count)};

    if (s - text >= 6 && is_file(string))
        keep(to, string);
    else if (count)
        g_string_append_printf(to, "[%u character%s]", count, count == 1 ? "" : "s");
    else
        g_string_append(to, "\"\"");
    return string.end;
}

static const char *put_binary(GString *to, const char *s) {
    unsigned bytes = 0;
    bool is_number = false;

    for (s += 2; *s && !is_cut(s) && !g_str_has_prefix(s, ">>");) {
        if (*s == '"') {
            s = past_string(s, &bytes);
            continue;
        }
        bytes += !is_number && g_ascii_isdigit(*s);
        is_number = g_ascii_isalnum(*s) || *s == ':' || *s == '/';
        s++;
    }
    g_string_append_printf(to, "<<%u byte%s", bytes, bytes == 1 ? "" : "s");
    if (!g_str_has_prefix(s, ">>"))
        return s;
    g_string_append(to, ">>");
    return s + 2;
}

/* -- Numbers and words ------------------------------------------------------------------ */

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static bool is_number(const char *s) {
    return g_ascii_isdigit(s[*s == '-']);
}

static const char *past_number(const char *s) {
    const char *end = past(s + (*s == '-'), DIGITS);

    return *end == '.' && g_ascii_isdigit(end[1]) ? past(end + 1, DIGITS) : end;
}

/* Returns the end of a comma-separated list of numbers; counts them. */
static const char *past_row(const char *s, unsigned *count) {
    for (*count = 1;; ++*count) {
        const char *end = past_number(s);

        s = past(end + (*end == ','), " \n");
        if (*end != ',' || !is_number(s))
            return end;
    }
}

static const char *put_number(GString *to, const char *s) {
    unsigned count;
    const char *end = past_row(s, &count);

    if (count > NUMBERS_MOST || (count > 1 && is_cut(end + (*end == ',')))) {
        g_string_append_printf(to, "%u integers", count);
        return end;
    }
    end = past_number(s);
    if (end - s > DIGITS_MOST)
        g_string_append(to, "integer()");
    else
        keep(to, (struct piece){s, end});
    return end;
}

static const char *put_word(GString *to, const char *s) {
    const char *end = past(s, LETTERS DIGITS "+/=");

    if (end - s > WORD_MOST && strcspn(s, DIGITS) < (size_t)(end - s))
        g_string_append_printf(to, "[%d characters]", (int)(end - s));
    else
        keep(to, (struct piece){s, end});
    return end;
}

/* Returns the end of <0.1.0>, #Ref<0.1.2.3> or #Fun<shop.3.1234>; NULL if there is none. */
static const char *past_handle(const char *s) {
    const char *end = *s == '#' ? past(s + 1, "FunPortRef") : s;

    if (*end != '<')
        return NULL;
    end = past(end + 1, *s == '#' ? LETTERS DIGITS "_.@" : DIGITS ".");
    return *end == '>' && end - s < HANDLE_MOST ? end + 1 : NULL;
}

static const char *put_handle(GString *to, const char *s) {
    const char *end = past_handle(s);

    if (!end)
        end = s + 1;
    keep(to, (struct piece){s, end});
    return end;
}

/* A PEM block in a log text. */
static const char *put_pem(GString *to, const char *s) {
    const char *end = strstr(s, "-----END");

    g_string_append(to, "-----BEGIN...");
    return end ? end : s + strlen(s);
}

/* -- The text --------------------------------------------------------------------------- */

static const char *put_next(GString *to, const char *text, const char *s) {
    bool is_begin = s == text || !(g_ascii_isalnum(s[-1]) || s[-1] == '_' || s[-1] == '@');
    bool is_word = g_ascii_isalnum(*s) &&
                   (!is_begin || g_ascii_isalpha(*s) || g_ascii_isalpha(*past(s, DIGITS)));

    if (*s == '"')
        return put_string(to, text, s);
    if (g_str_has_prefix(s, "<<"))
        return put_binary(to, s);
    if (g_str_has_prefix(s, "-----BEGIN"))
        return put_pem(to, s);
    if (is_word)
        return put_word(to, s);
    if (is_begin && is_number(s))
        return put_number(to, s);
    return put_handle(to, s);
}

void dt_contents_hide(GString *to, const char *text) {
    g_string_truncate(to, 0);
    for (const char *s = text; *s;)
        s = put_next(to, text, s);
}

void dt_contents_cut(GString *reason) {
    enum { WORD = 40 };
    static const char cut[] = "...";

    if (reason->len <= DT_REASON_MOST)
        return;
    size_t size = dt_head(reason->str, DT_REASON_MOST - strlen(cut)), word = size;
    while (word > size - WORD && !strchr(" ,", reason->str[word - 1]))
        word--;
    g_string_truncate(reason, word > size - WORD ? word : size);
    g_string_append(reason, cut);
}
