/* A program whose second thread prints its identity in the C library and its number, and waits
 * until the end of the standard input. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *waits(void *arg) {
    char byte;
    printf("%ju %ld\n", (uintmax_t)(uintptr_t)pthread_self(), syscall(SYS_gettid));
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    return arg;
}

int main(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, waits, NULL) || pthread_join(thread, NULL);
}
