/*
 * The wire format of protocol buffers: fields with their numbers, appended to a block of bytes.
 * Texts of a recording may contain any bytes; the output is valid, harmless UTF-8.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <glib.h>

struct dt_wire {
    uint8_t *bytes;
    size_t size, capacity;
};

enum {
    DT_WIRE_VARINT = 0,
    DT_WIRE_FIXED64 = 1,
    DT_WIRE_BYTES = 2,
    /* Room for all fields of a message except its texts. */
    DT_WIRE_SPARE = 512,
};

/* Appends at most `max` bytes of a text, without a field. */
void dt_wire_put(struct dt_wire *wire, const char *text, size_t max);
/* Appends a text field. */
void dt_wire_text(struct dt_wire *wire, unsigned field, const char *text, size_t max);

static inline void dt_wire_reserve(struct dt_wire *w, size_t bytes) {
    if (w->capacity - w->size >= bytes)
        return;
    w->capacity = 2 * (w->capacity + bytes);
    w->bytes = g_realloc(w->bytes, w->capacity);
}

static inline void dt_wire_varint(struct dt_wire *w, uint64_t value) {
    while (value > 127) {
        w->bytes[w->size++] = (uint8_t)(value | 128);
        value >>= 7;
    }
    w->bytes[w->size++] = (uint8_t)value;
}

static inline void dt_wire_tag(struct dt_wire *w, unsigned field, unsigned wire) {
    dt_wire_varint(w, field << 3 | wire);
}

static inline void dt_wire_number(struct dt_wire *w, unsigned field, uint64_t value) {
    dt_wire_reserve(w, 16);
    dt_wire_tag(w, field, DT_WIRE_VARINT);
    dt_wire_varint(w, value);
}

static inline void dt_wire_fixed64(struct dt_wire *w, unsigned field, uint64_t value) {
    dt_wire_reserve(w, 16);
    dt_wire_tag(w, field, DT_WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        w->bytes[w->size++] = (uint8_t)(value >> 8 * i);
}

/* Begins an embedded message or text. dt_wire_leave writes its length, usually into the one byte
   that dt_wire_enter reserves. */
static inline size_t dt_wire_enter(struct dt_wire *w, unsigned field) {
    dt_wire_reserve(w, DT_WIRE_SPARE);
    dt_wire_tag(w, field, DT_WIRE_BYTES);
    return ++w->size;
}

static inline void dt_wire_leave(struct dt_wire *w, size_t start) {
    size_t size = w->size - start, more = 0;

    for (size_t s = size; s > 127; s >>= 7)
        more++;
    if (more) {
        dt_wire_reserve(w, more);
        memmove(w->bytes + start + more, w->bytes + start, size);
    }
    w->size = start - 1;
    dt_wire_varint(w, size);
    w->size += size;
}
