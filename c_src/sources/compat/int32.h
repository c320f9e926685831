/*
 * The numbers of the provider erlang, which have 32 bits.
 */
#ifndef DT_SOURCES_COMPAT_INT32_H
#define DT_SOURCES_COMPAT_INT32_H

#include <stdint.h>

static inline int32_t dt_int32(uint64_t n) {
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

#endif
