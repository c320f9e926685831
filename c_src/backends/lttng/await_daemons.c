/*
 * Checks whether a session daemon responds. A successful connect() proves nothing, because the
 * kernel also connects to the socket of a stopped daemon. So the connection is shut down at once: a
 * running daemon reads the end of the stream instead of a registration, and closes the connection;
 * 2.13 to 2.16 do so without logging anything.
 */
#define _GNU_SOURCE 1 /* NOLINT(bugprone-reserved-identifier): its name, for SOCK_CLOEXEC */

#include "backends/lttng/await_daemons.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 1000, FOR_EVER = -1 };

static long now_ms(void) {
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

static void sleep_ms(int ms) {
    (void)poll(NULL, 0, ms);
}

enum { NO_DAEMON = -1, QUEUE_FULL = -2 };

/* A connection that is shut down on this side, or NO_DAEMON or QUEUE_FULL. */
static int connect_to(const struct dt_lttng_daemon *daemon) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), none;

    if (fd < 0)
        return NO_DAEMON;
    if (connect(fd, (const struct sockaddr *)&daemon->socket, sizeof daemon->socket) == 0 &&
        shutdown(fd, SHUT_WR) == 0)
        return fd;
    none = errno == EAGAIN ? QUEUE_FULL : NO_DAEMON;
    (void)close(fd);
    return none;
}

/* Whether the daemon closes the connection in time. */
static bool is_closed(int fd, int timeout_ms) {
    long deadline = now_ms() + timeout_ms;
    struct pollfd poll_fd = {.fd = fd};
    int ready;

    do {
        long left = timeout_ms == FOR_EVER ? FOR_EVER : deadline - now_ms();

        if (left < 0 && timeout_ms != FOR_EVER)
            return false;
        ready = poll(&poll_fd, 1, (int)left);
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

/* Waits until the daemon answers; returns false if that took more than ANSWER_MS. It keeps the one
   connection, because each further one would take an entry of the daemon's queue. */
static bool answers(const struct dt_lttng_daemon *daemon,
                    void (*waiting)(const struct dt_lttng_daemon *daemon)) {
    int fd = connect_to(daemon);
    bool in_time;

    if (fd == NO_DAEMON)
        return true;
    if (fd == QUEUE_FULL) {
        waiting(daemon);
        sleep_ms(ANSWER_MS);
        return false;
    }
    in_time = is_closed(fd, ANSWER_MS);
    if (!in_time) {
        waiting(daemon);
        (void)is_closed(fd, FOR_EVER);
    }
    (void)close(fd);
    return in_time;
}

/* After a wait for one daemon all are checked again: another may have begun to hang meanwhile. */
void dt_lttng_daemons_await(const struct dt_lttng_daemons *daemons,
                            void (*waiting)(const struct dt_lttng_daemon *daemon)) {
    bool all;

    do {
        all = true;
        for (unsigned i = 0; i < daemons->count; i++)
            all = answers(&daemons->daemon[i], waiting) && all;
    } while (!all);
}
