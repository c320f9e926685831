#include "dt_put.h"

#include <string.h>

static size_t room(const struct dt_text *text) {
    return (size_t)(text->buffer + sizeof text->buffer - text->next);
}

bool dt_put(struct dt_text *text, const char *s, size_t n) {
    if (n >= room(text))
        return false;
    memcpy(text->next, s, n);
    text->next += n;
    return true;
}

bool dt_put_string(struct dt_text *text, const char *s) {
    return dt_put(text, s, strlen(s));
}

bool dt_put_number(struct dt_text *text, unsigned long number) {
    char digits[3 * sizeof number];
    char *first = digits + sizeof digits;

    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return dt_put(text, first, (size_t)(digits + sizeof digits - first));
}

bool dt_put_runtime(struct dt_text *text, ERL_NIF_TERM term) {
    int n = enif_snprintf(text->next, room(text), "%T", term);

    if (n <= 0 || (size_t)n >= room(text))
        return false;
    text->next += n;
    return true;
}

const char *dt_put_end(struct dt_text *text, char *start, bool whole) {
    if (!whole || !dt_put(text, "", 1)) {
        text->next = start;
        return NULL;
    }
    return start;
}

static bool is_continuation(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

const char *dt_put_cut_end(struct dt_text *text, char *start, size_t max, bool all) {
    static const char mark[] = "...";
    size_t size = (size_t)(text->next - start), keep = max - strlen(mark);

    if (all && size <= max)
        return dt_put_end(text, start, true);
    if (size > keep) {
        while (keep > 0 && is_continuation(start[keep]))
            keep--;
        text->next = start + keep;
    }
    return dt_put_end(text, start, dt_put_string(text, mark));
}
