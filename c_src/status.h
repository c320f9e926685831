/*
 * The status of the node, which the host reads without asking the node.
 *
 * A reader finds the address in an ELF note of the library's file: section .note.dyntrace, name
 * "dyntrace", type DT_STATUS_NOTE; the description is the unrelocated address, 8 bytes. At that
 * address in the process's memory, relocated to the mapping of the library, is a struct dt_status.
 * Each change of its layout changes the member `layout`.
 */
#ifndef DT_STATUS_H
#define DT_STATUS_H

#include <stdatomic.h>
#include <stdint.h>

#include "sources/nif.h"

/* Macros, because the assembler uses them. The second is the type of another note, in section
   .note.dyntrace.nif: the major and the minor version of erl_nif that the library requires. */
#define DT_STATUS_NOTE 1
#define DT_NIF_NOTE 2

enum { DT_STATUS_LAYOUT = 1, DT_STATUS_SIZE = 4096 };

struct dt_status {
    uint32_t layout;
    _Atomic(uint32_t) version;                        /* odd while it is written: retry */
    uint32_t size;                                    /* of the text */
    char text[DT_STATUS_SIZE - 3 * sizeof(uint32_t)]; /* lines `key: value`, UTF-8 */
};

extern struct dt_status dt_status;

/* Binary: the text, which is cut if it is too long. */
dt_nif dt_status_set;

#endif
