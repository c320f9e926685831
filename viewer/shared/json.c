#include "shared/json.h"

#include "shared/recorded.h"

void dt_json_name(GString *to, const char *name) {
    char last = '{';

    if (to->len > 0)
        last = to->str[to->len - 1];
    if (last != '{' && last != '[' && last != ':')
        g_string_append_c(to, ',');
    if (name)
        g_string_append_printf(to, "\"%s\":", name);
}

void dt_json_open(GString *to, const char *name, char bracket) {
    dt_json_name(to, name);
    g_string_append_c(to, bracket);
}

void dt_json_close(GString *to, char bracket) {
    g_string_append_c(to, bracket);
}

/* Characters with a meaning in HTML are also escaped, because the text may be part of a script in a
   page. So are U+2028 and U+2029, which are line terminators in JavaScript. */
static bool is_escaped(gunichar c) {
    return c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f ||
           c == 0x2028 || c == 0x2029;
}

static void put_string(GString *to, const char *text) {
    g_string_append_c(to, '"');
    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);

        /* Not UTF-8: a truncated text may end inside a character. */
        if (c == (gunichar)-1 || c == (gunichar)-2) {
            g_string_append(to, "\\ufffd");
            text++;
            continue;
        }
        if (is_escaped(c))
            g_string_append_printf(to, "\\u%04x", c);
        else
            g_string_append_len(to, text, g_utf8_next_char(text) - text);
        text = g_utf8_next_char(text);
    }
    g_string_append_c(to, '"');
}

void dt_json_text(GString *to, const char *name, const char *text) {
    dt_json_name(to, name);
    put_string(to, text ? text : "");
}

void dt_json_number(GString *to, const char *name, int64_t number) {
    if (number == DT_NO_VALUE) {
        dt_json_null(to, name);
        return;
    }
    dt_json_name(to, name);
    g_string_append_printf(to, "%" PRId64, number);
}

void dt_json_boolean(GString *to, const char *name, bool is) {
    dt_json_name(to, name);
    g_string_append(to, is ? "true" : "false");
}

void dt_json_null(GString *to, const char *name) {
    dt_json_name(to, name);
    g_string_append(to, "null");
}
