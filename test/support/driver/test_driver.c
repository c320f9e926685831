/*
 * Two linked-in drivers for tests: test_output_drv gets data in one piece, and
 * test_outputv_drv, built with TEST_OUTPUTV, as a vector. Both send the data back.
 *
 * control: TEST_ECHO returns its data
 *          TEST_TIMER starts a timer, which expires after the milliseconds that the data gives in
 *          decimal digits: the port then sends "timeout"
 *          TEST_QUEUE puts its data into the port's queue. Closing the port flushes it: a timer
 *          empties the queue, and then the driver stops
 *          TEST_BUSY, TEST_NOT_BUSY make the port busy, and end that
 *          TEST_SLEEP occupies the scheduler for the milliseconds that the data gives
 *          TEST_SLEEP_LATER does that when a timer expires, in the port's own turn
 *          Each returns "ok", except TEST_ECHO.
 * call:    returns its term
 */
#include <string.h>
#include <unistd.h>

#include <erl_driver.h>

enum { TEST_ECHO, TEST_TIMER, TEST_QUEUE, TEST_BUSY, TEST_NOT_BUSY, TEST_SLEEP, TEST_SLEEP_LATER };

enum { FLUSH_MS = 10 };

static unsigned long sleep_ms;

static ErlDrvData start(ErlDrvPort port, char *command) {
    (void)command;
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

static void stop(ErlDrvData data) {
    (void)data;
}

static void flush(ErlDrvData data) {
    driver_set_timer((ErlDrvPort)data, FLUSH_MS);
}

static void timeout(ErlDrvData data) {
    static char expired[] = "timeout";
    ErlDrvPort port = (ErlDrvPort)data;

    usleep(1000 * sleep_ms);
    sleep_ms = 0;
    driver_output(port, expired, strlen(expired));
    driver_deq(port, driver_sizeq(port));
}

#ifdef TEST_OUTPUTV
#define NAME "test_outputv_drv"
#define OUTPUT NULL
#define OUTPUTV outputv

static void outputv(ErlDrvData data, ErlIOVec *given) {
    char *bytes = driver_alloc(given->size + 1);

    if (!bytes)
        return;
    driver_vec_to_buf(given, bytes, given->size);
    driver_output((ErlDrvPort)data, bytes, given->size);
    driver_free(bytes);
}
#else
#define NAME "test_output_drv"
#define OUTPUT output
#define OUTPUTV NULL

static void output(ErlDrvData data, char *given, ErlDrvSizeT size) {
    driver_output((ErlDrvPort)data, given, size);
}
#endif

static ErlDrvSSizeT answer(char **to, const char *from, ErlDrvSizeT size) {
    ErlDrvBinary *binary = driver_alloc_binary(size);

    if (!binary)
        return -1;
    memcpy(binary->orig_bytes, from, size);
    *to = (char *)binary;
    return size;
}

static unsigned long number(const char *digits, ErlDrvSizeT size) {
    unsigned long n = 0;

    for (; size-- > 0; digits++)
        n = 10 * n + *digits - '0';
    return n;
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned command, char *given, ErlDrvSizeT size,
                            char **reply, ErlDrvSizeT room) {
    ErlDrvPort port = (ErlDrvPort)data;

    (void)room;
    switch (command) {
    case TEST_ECHO:
        return answer(reply, given, size);
    case TEST_TIMER:
        driver_set_timer(port, number(given, size));
        break;
    case TEST_QUEUE:
        driver_enq(port, given, size);
        break;
    case TEST_BUSY:
    case TEST_NOT_BUSY:
        set_busy_port(port, command == TEST_BUSY);
        break;
    case TEST_SLEEP:
        usleep(1000 * number(given, size));
        break;
    case TEST_SLEEP_LATER:
        sleep_ms = number(given, size);
        driver_set_timer(port, 1);
        break;
    default:
        return -1;
    }
    return answer(reply, "ok", 2);
}

/* `given` and the reply are terms in the external format. */
static ErlDrvSSizeT call(ErlDrvData data, unsigned command, char *given, ErlDrvSizeT size,
                         char **reply, ErlDrvSizeT room, unsigned *flags) {
    (void)data;
    (void)command;
    (void)flags;
    if (size > room && !(*reply = driver_alloc(size)))
        return -1;
    memcpy(*reply, given, size);
    return size;
}

static ErlDrvEntry entry = {
    .driver_name = NAME,
    .start = start,
    .stop = stop,
    .output = OUTPUT,
    .outputv = OUTPUTV,
    .control = control,
    .call = call,
    .timeout = timeout,
    .flush = flush,
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING,
};

DRIVER_INIT(test_drv) {
    return &entry;
}
