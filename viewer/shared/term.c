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

const char *dt_term_end(const char *term) {
    int depth = 0;

    while (*term) {
        bool is_begin = g_str_has_prefix(term, "<<"), is_end = g_str_has_prefix(term, ">>");

        if (*term == '"' || *term == '\'') {
            term += dt_quoted(term);
            continue;
        }
        if (depth == 0 && (strchr(",|}])", *term) || g_str_has_prefix(term, "=>")))
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

        s = dt_term_end(s);
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

/* Returns the end of an atom as Erlang or Elixir writes it: pay, :pay, Shop.Cart; NULL if there is
   none. */
static const char *name(const char *s) {
    if (g_ascii_isupper(*s)) {
        while (g_ascii_isalnum(*s) || *s == '_' || *s == '.')
            s++;
        return s;
    }
    s += *s == ':';
    return *s == '"' ? s + dt_quoted(s) : is_atom(s) ? atom(s) : NULL;
}

/* Returns the text after the two atoms of a module and function; NULL if there are none. */
static const char *function(const char *s) {
    for (int i = 0; i < 2; i++) {
        s = name(s);
        if (!s || *s++ != ',')
            return NULL;
        s += *s == ' ';
    }
    return s;
}

/* Appends data as `_`, and data in a row once. */
static void put_data(GString *to) {
    if (g_str_has_suffix(to->str, "_,"))
        g_string_truncate(to, to->len - 1);
    else
        g_string_append_c(to, '_');
}

static const char *binary_end(const char *s) {
    const char *end = strstr(s, ">>");

    return end ? end + 2 : s + strlen(s);
}

/* Returns the end of the number that starts at `s`; `s` if there is none. */
static const char *number_end(const char *s) {
    return g_ascii_isdigit(s[*s == '-']) ? s + strspn(s, "-0123456789.#e+") : s;
}

/* Returns the end of a prefix whose number is code, not data: {line,17 or {lists,map,2, or the same
   of Elixir. */
static const char *place_end(const char *s) {
    static const char erlang[] = "{line,", elixir[] = "line: ";
    const char *after = NULL;

    if (g_str_has_prefix(s, erlang))
        after = s + strlen(erlang);
    else if (g_str_has_prefix(s, elixir))
        after = s + strlen(elixir);
    else if (*s == '{')
        after = function(s + 1);

    return after && g_ascii_isdigit(*after) ? number_end(after) : NULL;
}

/* Appends what the term begins with: a whole atom, identifier, place in the code or other data, or
   one character. Returns the rest. */
static const char *put_folded(GString *to, const char *s) {
    const char *end = *s == '<' ? numbers(s + 1) : NULL;

    if (end && *end == '>') {
        g_string_append(to, "<..>");
        return end + 1;
    }
    end = place_end(s);
    if (!end && (is_atom(s) || g_ascii_isupper(*s)))
        end = atom(s);
    if (end) {
        g_string_append_len(to, s, end - s);
        return end;
    }
    if (*s == '"' || g_str_has_prefix(s, "<<") || number_end(s) > s) {
        put_data(to);
        return *s == '"' ? s + dt_quoted(s) : *s == '<' ? binary_end(s) : number_end(s);
    }
    g_string_append_c(to, *s);
    return s + 1;
}

char *dt_term_fold(const char *text) {
    GString *to = g_string_new(NULL);

    while (*text)
        text = put_folded(to, text);
    return g_string_free(to, false);
}

bool dt_term_has_stack(const char *text) {
    for (const char *s = strchr(text, '{'); s; s = strchr(s + 1, '{')) {
        const char *after = s > text ? function(s + 1) : NULL;

        if (!after)
            continue;
        /* An entry of a stack trace has the arity or the arguments, and a location. */
        if (s[-1] == '[' && (g_ascii_isdigit(*after) || *after == '['))
            return true;
        if (s[-1] == ',' && *after == '[' && after - s > 6 && memcmp(after - 6, ",call,", 6) == 0)
            return true;
    }
    return false;
}
