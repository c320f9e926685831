#include "status.h"

#include <string.h>

#include "catalogue/atoms.h"

struct dt_status dt_status = {.layout = DT_STATUS_LAYOUT};

/* ELF notes of the file. Like those of USDT, their sections are not loaded: the linker writes an
   address, and a note does not need relocation. */
#ifdef __ELF__
#define AS_TEXT_(value) #value
#define AS_TEXT(value) AS_TEXT_(value)
/* clang-format off */
#define NOTE(section, type, description)                                                           \
    __asm__(".pushsection " section ",\"\",%note\n"                                                \
            ".balign 4\n"                                                                         \
            ".4byte 9, 8, " AS_TEXT(type) "\n"                                                    \
            ".asciz \"dyntrace\"\n"                                                               \
            ".balign 4\n" description "\n"                                                        \
            ".popsection\n")
/* clang-format on */

NOTE(".note.dyntrace", DT_STATUS_NOTE, ".8byte dt_status");
NOTE(".note.dyntrace.nif", DT_NIF_NOTE,
     ".4byte " AS_TEXT(ERL_NIF_MAJOR_VERSION) ", " AS_TEXT(ERL_NIF_MINOR_VERSION));
#endif

/* The size of the longest prefix of a UTF-8 text that fits into `most` bytes. */
static uint32_t cut(const ErlNifBinary *text, size_t most) {
    size_t size = text->size;

    if (size > most)
        for (size = most; size > 0 && (text->data[size] & 0xc0) == 0x80;)
            size--;
    return size;
}

/* Only the worker and the load of the module write it, one at a time. */
DT_NIF(dt_status_set) {
    uint32_t version = atomic_load_explicit(&dt_status.version, memory_order_relaxed) & ~1U;
    ErlNifBinary text;

    if (!enif_inspect_binary(env, argv[0], &text))
        return enif_make_badarg(env);
    atomic_store_explicit(&dt_status.version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    dt_status.size = cut(&text, sizeof dt_status.text);
    memcpy(dt_status.text, text.data, dt_status.size);
    atomic_store_explicit(&dt_status.version, version + 2, memory_order_release);
    return atom_ok;
}
