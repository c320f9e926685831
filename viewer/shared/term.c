#include "shared/term.h"

#include <stdbool.h>
#include <string.h>

#include <glib.h>

#include "shared/texts.h"

static bool is_atom(const char *s) {
    return g_ascii_islower(*s) || *s == '\'';
}

/* Returns the end of an atom. */
static const char *atom(const char *s) {
    if (*s == '\'')
        return s + dt_quoted(s);
    while (g_ascii_isalnum(*s) || *s == '_' || *s == '@' || (unsigned char)*s >= 0x80)
        s++;
    return s;
}

/* Returns the end of a term: the comma or bracket after it, or the end of the text. */
static const char *end_of(const char *term) {
    int depth = 0;

    while (*term) {
        bool is_begin = g_str_has_prefix(term, "<<"), is_end = g_str_has_prefix(term, ">>");

        if (*term == '"' || *term == '\'') {
            term += dt_quoted(term);
            continue;
        }
        if (depth == 0 && strchr(",}])", *term))
            return term;
        if (strchr("{[(", *term) || is_begin)
            depth++;
        else if (depth > 0 && (strchr("}])", *term) || is_end))
            depth--;
        term += is_begin || is_end ? 2 : 1;
    }
    return term;
}

/* Appends an atom unchanged, and any other term as `_`. */
static void put_kind(GString *to, const char *s, const char *end) {
    if (is_atom(s) && atom(s) == end)
        g_string_append_len(to, s, end - s);
    else
        g_string_append_c(to, '_');
}

static void put_tuple(GString *to, const char *s) {
    g_string_append_c(to, '{');
    while (*++s && *s != '}') {
        const char *element = s;

        s = end_of(s);
        if (to->len == 1)
            put_kind(to, element, s);
        else
            g_string_append(to, ",_");
        if (*s != ',')
            break;
    }
    g_string_append(to, *s ? "}" : ",...");
}

void dt_term_shape(const char *request, char *shape, size_t size) {
    g_autoptr(GString) to = g_string_new(NULL);

    if (*request == '{')
        put_tuple(to, request);
    else if (*request == '[')
        g_string_append(to, request[1] == ']' ? "[]" : "[_]");
    else if (*request == '#')
        g_string_append(to, request[1] == '{' ? "#{_}" : "_");
    else
        put_kind(to, request, request + strlen(request));
    if (to->len >= size) {
        static const char cut[] = "...";

        g_string_truncate(to, dt_head(to->str, size - sizeof cut));
        g_string_append(to, cut);
    }
    g_strlcpy(shape, to->str, size);
}

/* Returns the end of a dot-separated list of numbers; NULL if there are none. */
static const char *numbers(const char *s) {
    if (!g_ascii_isdigit(*s))
        return NULL;
    while (g_ascii_isdigit(*s) || *s == '.')
        s++;
    return s;
}

char *dt_term_fold(const char *text) {
    GString *to = g_string_new(NULL);

    while (*text) {
        const char *end = *text == '<' ? numbers(text + 1) : NULL;

        if (end && *end == '>') {
            g_string_append(to, "<..");
            text = end;
        } else {
            g_string_append_c(to, *text++);
        }
    }
    return g_string_free(to, false);
}
