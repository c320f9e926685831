/*
 * The status: what the node says of itself to the host, which reads it without asking the node.
 *
 * A reader finds the address in a note of the library's file: section .note.dyntrace, name
 * "dyntrace", type DT_STATUS_NOTE, description the address as 8 bytes, as the file has it (before
 * the library is moved to where it is mapped). There, in the process's memory, is a struct
 * dt_status. Its layout does not change within one `layout`.
 */
#ifndef DT_STATUS_H
#define DT_STATUS_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdint.h>

#include "sources/nif.h"

/* Macros: the assembler reads them. The second is the type of another note, in section
   .note.dyntrace.nif: the major and the minor version of erl_nif that the library requires. */
#define DT_STATUS_NOTE 1
#define DT_NIF_NOTE 2

enum { DT_STATUS_LAYOUT = 1, DT_STATUS_SIZE = 4096 };

struct dt_status {
    uint32_t layout;
    _Atomic(uint32_t) version;                        /* odd while it is written: read it again */
    uint32_t size;                                    /* of the text */
    char text[DT_STATUS_SIZE - 3 * sizeof(uint32_t)]; /* lines `key: value`, UTF-8 */
};

extern struct dt_status dt_status;

/* Binary: the text. One that is too long is cut. */
dt_nif dt_status_set;

#endif
