/*
 * The current process of a thread, as texts in the thread's memory. Sampling programs can read them
 * there at any time: an event per sample would come too late, and an event per scheduling would
 * cost more than the sampled work.
 *
 *     pid   [ <0.131.0>\0 ]      - between two processes
 *     entry [ lists:sort/1\0 ]
 *
 * The program may interrupt the thread anywhere, also while it writes. So a text is empty until it
 * is complete.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "sources/decode.h"
#include "sources/parts.h"

enum { PID_SIZE = 32, ENTRY_SIZE = 96 };

struct current {
    char pid[PID_SIZE];
    char entry[ENTRY_SIZE];
    int64_t reported; /* when the thread last reported the address, in ns */
};

static _Thread_local struct current own;

enum { REPORT_EVERY_NS = 100 * 1000 * 1000 };

static void put(char *to, size_t size, const char *text) {
    size_t length = strnlen(text, size - 1);

    to[0] = '\0';
    atomic_signal_fence(memory_order_seq_cst);
    if (length == 0)
        return;
    memcpy(to + 1, text + 1, length - 1);
    to[length] = '\0';
    atomic_signal_fence(memory_order_seq_cst);
    to[0] = text[0];
}

/* The kernel's tick is accurate enough, and takes a few ns to read. */
static int64_t now(void) {
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

enum dt_decoded dt_decode_current(struct dt_traced *trace, union dt_event *event) {
    int64_t time = now();

    /* First, so that if the process cannot be decoded, none is shown instead of the previous one.
     */
    put(own.pid, PID_SIZE, "-");
    if (trace->type[0] == 'i') {
        const char *pid, *entry;

        DT_TRY(pid, dt_id(trace, trace->tracee));
        DT_TRY(entry, dt_where(trace, trace->term));
        put(own.entry, ENTRY_SIZE, entry);
        put(own.pid, PID_SIZE, pid);
    }
    if (time - own.reported < REPORT_EVERY_NS)
        return DT_NO_EVENT;
    own.reported = time;
    event->process_current.place = (uintptr_t)&own;
    return DT_DECODED;
}
