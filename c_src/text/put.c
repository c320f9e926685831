#include "text/put.h"

#define STR(...) +DT_ID_MAX + 1
#define TEXT(...) +DT_TERM_MAX + 1
#define STRING(...) +DT_STRING_MAX + 1
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    _Static_assert(0 fields + DT_PIECE_MAX <= DT_TEXT_SIZE,                                        \
                   #name " has more text than fits into the buffer of an event");
#include "catalogue/probes.def"

bool dt_put_bytes(struct dt_text *text, const void *s, size_t n) {
    return dt_put(text, s, n);
}

static unsigned digits_of(unsigned long number) {
    unsigned digits = 1;

    for (; number >= 10000; number /= 10000)
        digits += 4;
    return digits + (number >= 10) + (number >= 100) + (number >= 1000);
}

/* Writes two digits per division, starting at the end. */
char *dt_digits(char *to, unsigned long number) {
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char *end = to + digits_of(number);

    _Static_assert(sizeof number <= 8, "more digits than DT_DIGITS");
    for (to = end; number >= 100; number /= 100)
        memcpy(to -= 2, pairs + 2 * (number % 100), 2);
    if (number >= 10)
        memcpy(to - 2, pairs + 2 * number, 2);
    else
        to[-1] = (char)('0' + number);
    return end;
}

bool dt_put_number(struct dt_text *text, unsigned long number) {
    if (dt_put_room(text) <= DT_DIGITS)
        return false;
    text->next = dt_digits(text->next, number);
    return true;
}

/* The runtime returns the number of bytes that it has written. If it has cut the text, that is one
   less than the size of the buffer. */
bool dt_put_runtime(struct dt_text *text, ERL_NIF_TERM term) {
    int n = enif_snprintf(text->next, dt_put_room(text), "%T", term);

    if (n <= 0 || (size_t)n + 1 >= dt_put_room(text))
        return false;
    text->next += n;
    return true;
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
