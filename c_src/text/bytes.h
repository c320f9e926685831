/*
 * Bytes of strings, as the runtime's %T spells them.
 */
#ifndef DT_TEXT_BYTES_H
#define DT_TEXT_BYTES_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>

enum { DT_BYTES = 256 };

/* DT_PLAIN: spelled as the byte itself. */
enum { DT_PLAIN = 0, DT_ESCAPED = 1, DT_UNPRINTABLE = 2 };

struct dt_byte {
    char text[4];
    unsigned char size, kind;
};

/* In lists and binaries that are strings. */
extern struct dt_byte dt_bytes_in_list[DT_BYTES], dt_bytes_in_binary[DT_BYTES];

/* In a binary that is not a string: a comma and the number. */
extern struct dt_byte dt_bytes_as_number[DT_BYTES];

/* Called once, while the library is loaded. False: out of memory. */
bool dt_bytes_calibrate(ErlNifEnv *env);

/* The bitwise or of the kinds of these bytes in a binary, up to the first unprintable one;
   DT_UNPRINTABLE if `n` is 0, because an empty binary is not a string. */
unsigned dt_bytes_kind(const unsigned char *bytes, size_t n);

#endif
