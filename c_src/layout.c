#include "layout.h"

#include <stdbool.h>
#include <stdint.h>

#include "catalogue/atoms.h"

DT_NIF(dt_layout_word) {
    return enif_make_uint64(env, argv[0]);
}

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/*
 * Any address may be invalid, so memory is read through /proc/self/mem, which returns an error. All
 * sizes are in words. glibc stores the values of the first 32 keys in the thread's own structure.
 */
enum { ENV_WORDS = 4, KEYS = 32, THREAD_WORDS = 256, DATA_WORDS = 64, PROCESS_WORDS = 32 };
enum { FRAMES_MOST = 16, CANDIDATES_MOST = 16 };

typedef uintptr_t word;

/* Reads as many whole words as possible. */
static unsigned read_words(int memory, word address, word *words, unsigned count) {
    ssize_t size = address % sizeof *words || address > INTPTR_MAX
                       ? 0
                       : pread(memory, words, count * sizeof *words, (off_t)address);

    return size > 0 ? size / sizeof *words : 0;
}

static bool is_process(int memory, word address, ERL_NIF_TERM pid) {
    word first;

    return address && read_words(memory, address, &first, 1) == 1 && first == pid;
}

/* The only offset in the thread's structure that has the value; 0 if not exactly one has it. */
static unsigned slot_of(const word *thread, unsigned count, word value) {
    unsigned slot = 0;

    for (unsigned i = 0; i < count; i++)
        if (thread[i] == value) {
            if (slot)
                return 0;
            slot = i;
        }
    return slot;
}

/* On a dirty scheduler, the process of the environment is a shadow of the real one. The thread's
   data may point to both. */
static ERL_NIF_TERM candidates(ErlNifEnv *env, int memory, ERL_NIF_TERM pid) {
    word thread[THREAD_WORDS], data[DATA_WORDS];
    unsigned size = read_words(memory, (word)pthread_self(), thread, THREAD_WORDS), found = 0;
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (pthread_key_t key = 0; key < KEYS; key++) {
        word value = (word)pthread_getspecific(key);
        unsigned slot = value ? slot_of(thread, size, value) : 0;
        unsigned count = slot ? read_words(memory, value, data, DATA_WORDS) : 0;

        for (unsigned i = 0; i < count && found < CANDIDATES_MOST; i++)
            if (is_process(memory, data[i], pid)) {
                ERL_NIF_TERM at = enif_make_tuple2(env, enif_make_uint(env, slot * sizeof(word)),
                                                   enif_make_uint(env, i * sizeof(word)));

                list = enif_make_list_cell(env, at, list);
                found++;
            }
    }
    return list;
}

/* The process of this environment, and the next word of the environment: the top of its heap. */
static bool find_process(ErlNifEnv *env, int memory, ERL_NIF_TERM pid, word found[2]) {
    word words[ENV_WORDS];
    unsigned count = read_words(memory, (word)env, words, ENV_WORDS);

    for (unsigned i = 0; i + 1 < count; i++)
        if (is_process(memory, words[i], pid)) {
            found[0] = words[i];
            found[1] = words[i + 1];
            return true;
        }
    return false;
}

/* In the process structure, the top of the heap, the top of the stack and the frame are adjacent; 0
   if they are not found. */
static unsigned place_of_frame(const word *process, unsigned count, word top) {
    for (unsigned i = 1; i + 2 < count; i++)
        if (process[i] == top)
            return i + 2;
    return 0;
}

/* A frame has the address of the next outer one, which is higher, and its return address. */
static ERL_NIF_TERM frames(ErlNifEnv *env, int memory, ERL_NIF_TERM pid) {
    word found[2], process[PROCESS_WORDS] = {0}, frame[2] = {0}, returns[FRAMES_MOST];
    ERL_NIF_TERM list = enif_make_list(env, 0);
    unsigned place = 0, count = 0;

    if (find_process(env, memory, pid, found))
        place =
            place_of_frame(process, read_words(memory, found[0], process, PROCESS_WORDS), found[1]);
    for (word next = process[place]; place && next && count < FRAMES_MOST; next = frame[0]) {
        if (next < process[place - 1] || read_words(memory, next, frame, 2) != 2 ||
            (frame[0] && frame[0] <= next))
            return enif_make_tuple2(env, enif_make_uint(env, 0), list);
        returns[count++] = frame[1];
    }
    for (unsigned i = count; i-- > 0;)
        list = enif_make_list_cell(env, enif_make_uint64(env, returns[i]), list);
    return enif_make_tuple2(env, enif_make_uint(env, count ? place * sizeof(word) : 0), list);
}

DT_NIF(dt_layout_candidates) {
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ERL_NIF_TERM found;
    ErlNifPid self;

    if (memory < 0)
        return atom_undefined;
    enif_self(env, &self);
    found = enif_make_tuple2(env, candidates(env, memory, self.pid), frames(env, memory, self.pid));
    (void)close(memory);
    return found;
}

#else

DT_NIF(dt_layout_candidates) {
    return atom_undefined;
}

#endif
