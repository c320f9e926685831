#include "perfetto/wire.h"

#include <stdbool.h>

static inline bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7f;
}

/* The size of the character at `text` if it can be written unchanged, else 0: control characters,
   and characters that change the direction of text, cannot. */
static size_t harmless(const char *text, size_t size) {
    if (is_plain((unsigned char)*text))
        return 1;
    gunichar c = g_utf8_get_char_validated(text, (gssize)size);
    if (c >= 0x110000 || c < 0xa0 || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
        return 0;
    return (size_t)(g_utf8_next_char(text) - text);
}

static void put_escaped(struct dt_wire *w, const char *text, size_t size, size_t max) {
    static const char digits[] = "0123456789abcdef", cut[] = "…";
    size_t end = w->size + max;

    for (size_t i = 0; i < size;) {
        unsigned char byte = (unsigned char)text[i];
        size_t bytes = harmless(text + i, size - i);
        size_t needs = bytes ? bytes : 4;

        if (w->size + needs + (i + (bytes ? bytes : 1) < size ? sizeof cut - 1 : 0) > end) {
            memcpy(w->bytes + w->size, cut, sizeof cut - 1);
            w->size += sizeof cut - 1;
            return;
        }
        if (bytes) {
            memcpy(w->bytes + w->size, text + i, bytes);
            w->size += bytes;
            i += bytes;
            continue;
        }
        w->bytes[w->size++] = '\\';
        if (byte == '\n' || byte == '\t') {
            w->bytes[w->size++] = byte == '\n' ? 'n' : 't';
        } else {
            w->bytes[w->size++] = 'x';
            w->bytes[w->size++] = (uint8_t)digits[byte >> 4];
            w->bytes[w->size++] = (uint8_t)digits[byte & 15];
        }
        i++;
    }
}

/* Whether all bytes are printable ASCII. Checks eight at a time. */
static bool all_plain(const char *text, size_t size) {
    const uint64_t ones = ~(uint64_t)0 / 255, highs = ones << 7;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        uint64_t eight;

        memcpy(&eight, text + i, 8);
        /* sets the high bits of bytes above 0x7e or below 0x20 */
        if ((eight | (eight + ones) | (eight - ones * 0x20)) & highs)
            return false;
    }
    for (; i < size; i++)
        if (!is_plain((unsigned char)text[i]))
            return false;
    return true;
}

void dt_wire_put(struct dt_wire *w, const char *text, size_t max) {
    dt_wire_reserve(w, max);
    size_t size = strlen(text);
    if (size > max || !all_plain(text, size)) {
        put_escaped(w, text, size, max);
        return;
    }
    memcpy(w->bytes + w->size, text, size);
    w->size += size;
}

void dt_wire_text(struct dt_wire *w, unsigned field, const char *text, size_t max) {
    size_t start = dt_wire_enter(w, field);

    dt_wire_put(w, text, max);
    dt_wire_leave(w, start);
}
