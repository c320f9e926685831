#include "shared/json.h"

#include "shared/recorded.h"

void dt_json_name(GString *to, const char *name) {
    char last = '{';

    if (to->len > 0)
        last = to->str[to->len - 1];
    if (last != '{' && last != '[' && last != ':')
        g_string_append_c(to, ',');
    if (!name)
        return;
    g_string_append_c(to, '"');
    g_string_append(to, name);
    g_string_append(to, "\":");
}

void dt_json_open(GString *to, const char *name, char bracket) {
    dt_json_name(to, name);
    g_string_append_c(to, bracket);
}

void dt_json_close(GString *to, char bracket) {
    g_string_append_c(to, bracket);
}

enum escapes { FOR_JSON, FOR_HTML };

/* Whether a byte needs no escape. In a page, the text may be part of a script, so characters with
   a meaning in HTML are also escaped. */
static bool is_plain(unsigned char byte, enum escapes escapes) {
    if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
        return false;
    return escapes == FOR_JSON || (byte != '<' && byte != '>' && byte != '&');
}

/* U+2028 and U+2029 are line terminators in JavaScript. */
static bool is_escaped(gunichar c) {
    return c < 0x80 || c == 0x2028 || c == 0x2029;
}

/* Appends a character that is not plain; returns the place after it. */
static const char *put_character(GString *to, const char *text, enum escapes escapes) {
    gunichar c = g_utf8_get_char_validated(text, -1);

    if (escapes == FOR_JSON && (*text == '"' || *text == '\\')) {
        g_string_append_c(to, '\\');
        g_string_append_c(to, *text);
        return text + 1;
    }
    /* Not UTF-8: a truncated text may end inside a character. */
    if (c == (gunichar)-1 || c == (gunichar)-2) {
        g_string_append(to, "\\ufffd");
        return text + 1;
    }
    if (is_escaped(c))
        g_string_append_printf(to, "\\u%04x", c);
    else
        g_string_append_len(to, text, g_utf8_next_char(text) - text);
    return g_utf8_next_char(text);
}

static void put_string(GString *to, const char *text, enum escapes escapes) {
    g_string_append_c(to, '"');
    while (*text) {
        const char *plain = text;

        while (is_plain((unsigned char)*text, escapes))
            text++;
        g_string_append_len(to, plain, text - plain);
        if (*text)
            text = put_character(to, text, escapes);
    }
    g_string_append_c(to, '"');
}

/* Several times as fast as printf. */
static void put_number(GString *to, int64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        digits[--at] = '-';
    g_string_append_len(to, digits + at, (gssize)(sizeof digits - at));
}

void dt_json_text(GString *to, const char *name, const char *text) {
    dt_json_name(to, name);
    put_string(to, text ? text : "", FOR_HTML);
}

void dt_json_raw_text(GString *to, const char *name, const char *text) {
    dt_json_name(to, name);
    put_string(to, text, FOR_JSON);
}

void dt_json_number(GString *to, const char *name, int64_t number) {
    if (number == DT_NO_VALUE) {
        dt_json_null(to, name);
        return;
    }
    dt_json_name(to, name);
    put_number(to, number);
}

void dt_json_boolean(GString *to, const char *name, bool is) {
    dt_json_name(to, name);
    g_string_append(to, is ? "true" : "false");
}

void dt_json_null(GString *to, const char *name) {
    dt_json_name(to, name);
    g_string_append(to, "null");
}
