#include "text/alias.h"

#include <string.h>

#include "text/put.h"

static const char prefix[] = "'Elixir.";

/* The runtime does not quote the module of a fun. */
static const char of_fun[] = "#Fun<Elixir.";

enum { PREFIX = sizeof prefix - 1, ANY_FUN = sizeof "#Fun<" - 1, OF_FUN = sizeof of_fun - 1 };

static bool is_in_alias(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

/* The length of the alias in the quoted atom at the start of s, or 0. An escaped quote does not
   start an atom. */
static size_t alias_length(const char *s, char before) {
    size_t n = 0;

    if (before == '\\' || strncmp(s, prefix, PREFIX) != 0)
        return 0;
    while (is_in_alias(s[PREFIX + n]))
        n++;
    return s[PREFIX + n] == '\'' ? n : 0;
}

/* The text gets shorter, so it is converted in place. */
const char *dt_text_alias(struct dt_text *text, const char *last) {
    char *start, *to, before = '\0';

    if (!last || !(strstr(last, prefix) || strncmp(last, of_fun, OF_FUN) == 0))
        return last;
    start = to = text->buffer + (last - text->buffer);
    const char *from = start;
    if (strncmp(from, of_fun, OF_FUN) == 0) {
        to += ANY_FUN;
        from += OF_FUN;
    }
    while (*from) {
        size_t n = alias_length(from, before);

        if (n > 0) {
            memmove(to, from + PREFIX, n);
            to += n;
            from += PREFIX + n + 1;
            if (*from == ':') {
                *to++ = '.';
                from++;
            }
            before = '\'';
        } else {
            before = *to++ = *from++;
        }
    }
    *to++ = '\0';
    text->next = to;
    return start;
}

const char *dt_text_fun(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM fun) {
    static const char external[] = "fun ";
    char *start = text->next;
    const char *made;

    if (!enif_is_fun(env, fun) || !(made = dt_put_end(text, start, dt_put_runtime(text, fun))))
        return NULL;
    return strncmp(made, external, strlen(external)) == 0 ? made + strlen(external) : made;
}
