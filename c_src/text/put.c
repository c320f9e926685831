#include "text/put.h"

bool dt_put_bytes(struct dt_text *text, const void *s, size_t n) {
    return dt_put(text, s, n);
}

bool dt_put_number(struct dt_text *text, unsigned long number) {
    enum { DIGITS = 20 };
    char digits[2 * DIGITS] = {0}, *first = digits + DIGITS;

    _Static_assert(sizeof number <= 8, "more digits than that");
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    if (dt_put_room(text) <= DIGITS)
        return false;
    /* A copy of a fixed size is quicker. */
    memcpy(text->next, first, DIGITS);
    text->next += digits + DIGITS - first;
    return true;
}

bool dt_put_runtime(struct dt_text *text, ERL_NIF_TERM term) {
    int n = enif_snprintf(text->next, dt_put_room(text), "%T", term);

    if (n <= 0 || (size_t)n >= dt_put_room(text))
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
