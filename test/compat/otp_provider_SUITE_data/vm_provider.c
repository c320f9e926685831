/* The provider org_erlang_otp as a VM that was built with LTTng has it: beside the VM, or in a
   program of its own. In a VM, a thread fires carrier_pool_put 100 times once it is enabled, each
   with its number, and then makes the file VM_FIRED. */
#ifndef VM_PROVIDER
#define VM_PROVIDER
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER org_erlang_otp
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./vm_provider.c"

#if !defined(VM_EVENTS) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define VM_EVENTS
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(org_erlang_otp, carrier_pool_put,
                           LTTNG_UST_TP_ARGS(const char *, type, int, instance,
                                             unsigned long, size),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(type, type)
                                               lttng_ust_field_integer(int, instance, instance)
                                               lttng_ust_field_integer(unsigned long, size, size)))
#endif
#include <lttng/tracepoint-event.h>

#ifndef VM_THREAD
#define VM_THREAD
static void *fire(void *file) {
    while (!lttng_ust_tracepoint_enabled(org_erlang_otp, carrier_pool_put))
        (void)usleep(1000);
    /* LTTng enables a tracepoint a moment before it records. */
    (void)usleep(500000);
    for (int n = 0; n < 100; n++)
        lttng_ust_do_tracepoint(org_erlang_otp, carrier_pool_put, "the_vm", n, 1);
    (void)close(open(file, O_WRONLY | O_CREAT, 0600));
    return NULL;
}

__attribute__((constructor)) static void start(void) {
    char program[4096] = "";
    pthread_t thread;

    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 || !strstr(program, "/beam"))
        return;
    /* It is not for the programs that the VM starts. */
    (void)unsetenv("LD_PRELOAD");
    (void)pthread_create(&thread, NULL, fire, getenv("VM_FIRED"));
}
#endif
