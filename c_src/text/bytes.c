#include "text/bytes.h"

#include <stdio.h>
#include <string.h>

struct dt_byte dt_bytes_in_list[DT_BYTES], dt_bytes_in_binary[DT_BYTES];
struct dt_byte dt_bytes_as_number[DT_BYTES];

/* Extracts the spelling from `raw`, the runtime's text of a string of this byte, between `open` and
   `end`. A single byte past ASCII becomes UTF-8. */
static void spell(struct dt_byte *spelling, unsigned char byte, const char *raw, const char *open,
                  const char *end) {
    size_t n = strlen(raw), around = strlen(open) + strlen(end);

    spelling->kind = DT_UNPRINTABLE;
    if (n <= around || n > around + sizeof spelling->text || strncmp(raw, open, strlen(open)) != 0)
        return;
    if (n == around + 1 && byte >= 0x80) {
        spelling->text[0] = (char)(0xC0 | byte >> 6);
        spelling->text[1] = (char)(0x80 | (byte & 0x3F));
        spelling->size = 2;
    } else {
        spelling->size = (unsigned char)(n - around);
        memcpy(spelling->text, raw + strlen(open), spelling->size);
    }
    spelling->kind = spelling->size == 1 ? DT_PLAIN : DT_ESCAPED;
}

/* The DT_PLAIN bytes of binaries as a range with at most two exceptions, so that a few comparisons
   suffice. */
static struct { unsigned char first, last, but[2]; } plain = {.first = 1, .last = 0};

static void find_plain(void) {
    unsigned first = 0, last = DT_BYTES - 1, but = 0;

    while (first < last && dt_bytes_in_binary[first].kind != DT_PLAIN)
        first++;
    while (last > first && dt_bytes_in_binary[last].kind != DT_PLAIN)
        last--;
    for (unsigned c = first; c <= last; c++)
        if (dt_bytes_in_binary[c].kind != DT_PLAIN) {
            if (but == sizeof plain.but)
                return;
            plain.but[but++] = (unsigned char)c;
        }
    plain.first = (unsigned char)first;
    plain.last = (unsigned char)last;
}

bool dt_bytes_calibrate(ErlNifEnv *env) {
    for (unsigned c = 0; c < DT_BYTES; c++) {
        ERL_NIF_TERM list = enif_make_list1(env, enif_make_uint(env, c)), binary;
        unsigned char *byte = enif_make_new_binary(env, 1, &binary);
        char raw[16] = "";

        if (!byte)
            return false;
        *byte = (unsigned char)c;
        dt_bytes_as_number[c].size = (unsigned char)snprintf(raw, sizeof raw, ",%u", c);
        memcpy(dt_bytes_as_number[c].text, raw, sizeof dt_bytes_as_number[c].text);
        if (enif_snprintf(raw, sizeof raw, "%T", list) > 0)
            spell(&dt_bytes_in_list[c], *byte, raw, "\"", "\"");
        if (enif_snprintf(raw, sizeof raw, "%T", binary) > 0)
            spell(&dt_bytes_in_binary[c], *byte, raw, "<<\"", "\">>");
    }
    find_plain();
    return true;
}

/* With a fixed size, compilers vectorize the loop, which has no branches. */
enum { BLOCK = 32 };

static bool is_plain_block(const unsigned char *bytes) {
    unsigned char other = 0;

    for (size_t i = 0; i < BLOCK; i++)
        other |= (bytes[i] < plain.first) | (bytes[i] > plain.last) | (bytes[i] == plain.but[0]) |
                 (bytes[i] == plain.but[1]);
    return !other;
}

unsigned dt_bytes_kind(const unsigned char *bytes, size_t n) {
    unsigned kind = n > 0 ? DT_PLAIN : DT_UNPRINTABLE;
    size_t i = 0;

    while (n - i >= BLOCK && is_plain_block(bytes + i))
        i += BLOCK;
    for (; i < n && kind < DT_UNPRINTABLE; i++)
        kind |= dt_bytes_in_binary[bytes[i]].kind;
    return kind;
}
