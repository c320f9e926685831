#include "viewer/sink.h"

/* Characters with a meaning in HTML are escaped, too: the text may stand inside a page's script. So
   are U+2028 and U+2029, which end lines of JavaScript. */
static bool is_escaped(gunichar c) {
    return c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7f ||
           c == 0x2028 || c == 0x2029;
}

void dt_json_string(GString *to, const char *text) {
    g_string_append_c(to, '"');
    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);

        /* A byte that is no UTF-8: cut texts may end inside a character. */
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
