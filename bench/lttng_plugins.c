/*
 * Two LTTng plugins, for the table of its settings: a clock that reads the CPU's counter, and the
 * CPU number from the kernel's `rseq` area. LTTNG_UST_CLOCK_PLUGIN and LTTNG_UST_GETCPU_PLUGIN
 * select them. They require glibc 2.35 or later.
 */
#include <lttng/ust-clock.h>
#include <lttng/ust-getcpu.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/rseq.h>

static uint64_t read_counter(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
#error "this CPU's counter is not known"
#endif
}

static uint64_t monotonic_ns(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Counts per second, measured for 20 ms. */
static uint64_t frequency(void) {
    static uint64_t measured;
    const uint64_t count = read_counter(), began = monotonic_ns();

    if (measured == 0) {
        while (monotonic_ns() - began < 20000000)
            ;
        measured = (read_counter() - count) * 1000000000 / (monotonic_ns() - began);
    }
    return measured;
}

static int uuid(char *text) {
    (void)strcpy(text, "0a4b3e5c-66e1-4f0c-9a53-dbe6d3e1c7f1");
    return 0;
}

static const char *name(void) {
    return "counter";
}

static const char *description(void) {
    return "The CPU's counter";
}

void lttng_ust_clock_plugin_init(void) {
    (void)lttng_ust_trace_clock_set_read64_cb(read_counter);
    (void)lttng_ust_trace_clock_set_freq_cb(frequency);
    (void)lttng_ust_trace_clock_set_uuid_cb(uuid);
    (void)lttng_ust_trace_clock_set_name_cb(name);
    (void)lttng_ust_trace_clock_set_description_cb(description);
    (void)lttng_ust_enable_trace_clock_override();
}

static int cpu(void) {
    const char *thread = __builtin_thread_pointer();

    return (int)((const struct rseq *)(thread + __rseq_offset))->cpu_id;
}

/* Without `rseq` the number would be unknown, and LTTng would drop each event. */
void lttng_ust_getcpu_plugin_init(void) {
    if (__rseq_size == 0)
        abort();
    (void)lttng_ust_getcpu_override(cpu);
}
