#include "shared/elixir.h"

#include <stdbool.h>
#include <string.h>

#include "shared/term.h"
#include "shared/texts.h"

/* Deeper terms stay as they are. */
enum { DEPTH = 32 };

static const char prefix[] = "'Elixir.";

enum { PREFIX = sizeof prefix - 1 };

static const char *put_term(GString *to, const char *s, unsigned depth);

static const char *copy(GString *to, const char *s, const char *end) {
    g_string_append_len(to, s, end - s);
    return end;
}

/* -- Atoms ------------------------------------------------------------------------------ */

static const char *past_word(const char *s) {
    while (g_ascii_isalnum(*s) || *s == '_' || *s == '@' || (unsigned char)*s >= 0x80)
        s++;
    return s;
}

/* Whether Elixir writes the atom without quotes. */
static bool is_plain(const char *s, const char *end) {
    const char *word = past_word(s);

    return (g_ascii_isalpha(*s) || *s == '_') && word + (*word == '?' || *word == '!') == end;
}

/* The text within the quotes of a quoted atom, which may be truncated. */
static const char *quoted_end(const char *s, const char *end) {
    return end > s + 1 && end[-1] == '\'' ? end - 1 : end;
}

/* The end of the atom at `s`; NULL if there is none. */
static const char *atom_end(const char *s) {
    return *s == '\'' ? s + dt_quoted(s) : g_ascii_islower(*s) ? past_word(s) : NULL;
}

/* `before` and `after`: what marks the atom, as in :ok and in ok: 1 */
static const char *put_atom(GString *to, const char *s, const char *before, const char *after) {
    const char *end = atom_end(s), *inner_end = *s == '\'' ? quoted_end(s, end) : end;
    const char *inner = s + (*s == '\'');

    if (g_str_has_prefix(s, prefix)) {
        copy(to, s + PREFIX, inner_end);
        return end;
    }
    bool is_bare = is_plain(inner, inner_end);
    g_string_append_printf(to, "%s%s%.*s%s%s", before, is_bare ? "" : "\"",
                           (int)(inner_end - inner), inner, is_bare ? "" : "\"", after);
    return end;
}

static bool is_word(const char *s, const char *end, const char *word) {
    return (size_t)(end - s) == strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

static const char *put_lower(GString *to, const char *s) {
    const char *end = past_word(s);

    /* A fun, a type in the place of a term, or three words that are not atoms in Elixir. */
    if (is_word(s, end, "fun") && *end == ' ')
        return copy(to, s, dt_term_end(s));
    if (*end == '(')
        return copy(to, s, dt_term_end(s));
    if (is_word(s, end, "true") || is_word(s, end, "false") || is_word(s, end, "nil"))
        return copy(to, s, end);
    return put_atom(to, s, ":", "");
}

/* -- Tuples, lists and maps ------------------------------------------------------------- */

/* NOLINTBEGIN(misc-no-recursion): DEPTH bounds it */

static const char *put_close(GString *to, const char *s, char close) {
    if (!*s)
        return s;
    g_string_append_c(to, close);
    return s + 1;
}

/* The elements from `s` to the closing bracket. */
static const char *put_elements(GString *to, const char *s, char close, unsigned depth) {
    while (*s && *s != close) {
        const char *end = s;

        if (*s == ',' || *s == '|')
            g_string_append(to, *s == ',' ? ", " : " | ");
        else
            end = put_term(to, s, depth);
        if (end == s && *s != ',' && *s != '|')
            g_string_append_c(to, *s);
        s = end == s ? s + 1 : end;
    }
    return put_close(to, s, close);
}

/* The value of a pair {key,value} whose key is an atom; NULL for any other term. */
static const char *value_in_pair(const char *s) {
    const char *key = *s == '{' ? s + 1 : NULL, *end = key ? atom_end(key) : NULL;
    const char *value = end && *end == ',' && !g_str_has_prefix(key, prefix) ? end + 1 : NULL;

    return value && *dt_term_end(value) == '}' ? value : NULL;
}

static bool is_keyword_list(const char *s) {
    do {
        const char *value = value_in_pair(s + 1);

        if (!value)
            return false;
        s = dt_term_end(value) + 1;
    } while (*s == ',');
    return *s == ']';
}

static const char *put_keywords(GString *to, const char *s, unsigned depth) {
    const char *value, *between = "[";

    while ((value = value_in_pair(s + 1))) {
        g_string_append(to, between);
        put_atom(to, s + 2, "", ": ");
        put_term(to, value, depth);
        s = dt_term_end(value) + 1;
        between = ", ";
    }
    return put_close(to, s, ']');
}

static const char *put_list(GString *to, const char *s, unsigned depth) {
    /* [6 characters] */
    const char *digits = s + 1 + strspn(s + 1, "0123456789");

    if (digits > s + 1 && *digits == ' ')
        return copy(to, s, digits + strcspn(digits, "]") + (strchr(digits, ']') != NULL));
    if (is_keyword_list(s))
        return put_keywords(to, s, depth);
    g_string_append_c(to, '[');
    return put_elements(to, s + 1, ']', depth);
}

/* One pair of a map. */
struct pair {
    const char *key, *value, *end;
};

/* Returns false at the end of the map, and for a pair whose value is cut off. */
static bool next_pair(const char **s, struct pair *pair) {
    pair->key = *s += **s == ',';
    const char *end = dt_term_end(*s);
    if (!g_str_has_prefix(end, "=>"))
        return false;
    pair->value = end + 2;
    *s = pair->end = dt_term_end(pair->value);
    return true;
}

static bool is_key(const struct pair *pair, const char *key) {
    return g_str_has_prefix(pair->key, key) &&
           pair->value - pair->key - 2 == (ptrdiff_t)strlen(key);
}

/* A struct hides the key of its type, an exception also the one that marks it. */
static bool is_hidden(const struct pair *pair, bool is_struct) {
    return is_struct && (is_key(pair, "'__struct__'") || is_key(pair, "'__exception__'"));
}

static const char *put_map(GString *to, const char *s, unsigned depth) {
    bool has_atoms = true, is_struct = false, is_first = true;
    struct pair pair;

    s += 2;
    g_string_append_c(to, '%');
    for (const char *at = s; next_pair(&at, &pair);) {
        has_atoms &= atom_end(pair.key) == pair.value - 2 && !g_str_has_prefix(pair.key, prefix);
        if (is_struct || !is_key(&pair, "'__struct__'") || !g_str_has_prefix(pair.value, prefix))
            continue;
        is_struct = true;
        put_atom(to, pair.value, "", "");
    }
    g_string_append_c(to, '{');
    while (next_pair(&s, &pair)) {
        if (is_hidden(&pair, is_struct))
            continue;
        g_string_append(to, is_first ? "" : ", ");
        is_first = false;
        if (has_atoms) {
            put_atom(to, pair.key, "", ": ");
        } else {
            put_term(to, pair.key, depth);
            g_string_append(to, " => ");
        }
        put_term(to, pair.value, depth);
    }
    /* What remains is the closing bracket, or a truncated key. */
    if (*s && *s != '}' && !is_first)
        g_string_append(to, ", ");
    return put_elements(to, s, '}', depth);
}

/* -- Terms ------------------------------------------------------------------------------ */

static const char *put_binary(GString *to, const char *s) {
    const char *string = s + 2, *end = *string == '"' ? string + dt_quoted(string) : NULL;

    if (end && (!*end || g_str_has_prefix(end, ">>")))
        return copy(to, string, end) + (*end ? 2 : 0);
    end = strstr(s, ">>");
    return copy(to, s, end ? end + 2 : s + strlen(s));
}

/* <0.9.0>, #Ref<0.1.2.3>, #Fun<Elixir.Shop.3.61> and others, with Elixir's names. */
static const char *put_handle(GString *to, const char *s) {
    const char *stop = dt_term_end(s), *begin = strchr(s, '<');
    const char *end = begin ? strchr(begin, '>') : NULL;

    if (!end || end >= stop)
        return copy(to, s, stop);
    if (*s == '<')
        g_string_append(to, "#PID");
    else if (g_str_has_prefix(s, "#Ref<"))
        g_string_append(to, "#Reference");
    else
        copy(to, s, begin);
    /* #Fun<Elixir.Shop.3.61> */
    if (dt_skip(&begin, "<Elixir."))
        g_string_append_c(to, '<');
    return copy(to, begin, end + 1);
}

static const char *put_term(GString *to, const char *s, unsigned depth) {
    if (depth > DEPTH)
        return copy(to, s, dt_term_end(s));
    depth++;
    if (*s == '{') {
        g_string_append_c(to, '{');
        return put_elements(to, s + 1, '}', depth);
    }
    if (*s == '[')
        return put_list(to, s, depth);
    if (g_str_has_prefix(s, "#{"))
        return put_map(to, s, depth);
    if (g_str_has_prefix(s, "<<"))
        return put_binary(to, s);
    if (*s == '#' || (*s == '<' && g_ascii_isdigit(s[1])))
        return put_handle(to, s);
    if (*s == '"') {
        g_string_append(to, "~c");
        return copy(to, s, s + dt_quoted(s));
    }
    if (*s == '\'')
        return put_atom(to, s, ":", "");
    if (g_ascii_islower(*s))
        return put_lower(to, s);
    return copy(to, s, dt_term_end(s));
}

/* NOLINTEND(misc-no-recursion) */

void dt_elixir_term(GString *to, const char *term) {
    while (*term) {
        const char *end = put_term(to, term, 0);

        if (end == term)
            g_string_append_c(to, *end++);
        term = end;
    }
}

/* -- Names ------------------------------------------------------------------------------ */

/* The end of the alias after the prefix; NULL if there is none. */
static const char *alias_end(const char *name) {
    if (!g_str_has_prefix(name, prefix))
        return NULL;
    const char *end = name + PREFIX;
    while (*end == '.' || past_word(end) > end)
        end = *end == '.' ? end + 1 : past_word(end);
    return *end == '\'' && end > name + PREFIX ? end : NULL;
}

char *dt_elixir_alias(const char *name) {
    const char *end = alias_end(name);

    return end && !end[1] ? g_strndup(name + PREFIX, (size_t)(end - name) - PREFIX) : NULL;
}

char *dt_elixir_function(const char *function) {
    const char *end = alias_end(function);

    if (!end || end[1] != ':')
        return NULL;
    return g_strdup_printf("%.*s.%s", (int)(end - function) - PREFIX, function + PREFIX, end + 2);
}
